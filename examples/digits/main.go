// Command digits trains a neural network to read digits, on a GPU, or on the simulated device where there is none: forward,
// backward and AdamW are operations of package ops on tensors in vram's memory. The program draws the digits itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
	"github.com/go-vram/vram/examples/internal/command"
)

func main() { os.Exit(command.Interruptible(run)) }

// run executes the program and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err == nil {
		err = open(ctx, o, stdout)
	}
	return command.Exit(ctx, "digits", err, stderr)
}

// options are the settings of the command line and the environment.
type options struct {
	config                        vram.Config
	hidden, batch, images, epochs int
	rate                          float64
	seed                          uint64
	graph                         bool
}

// parse reads defaults, environment and flags, in this order. Its error is flag.ErrHelp or a *command.UsageError; help goes to
// stderr.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := command.NewFlags("digits", `"2GB"`)
	flags.IntVar(&o.hidden, "hidden", 64, "width of the hidden layer")
	flags.IntVar(&o.batch, "batch", 64, "images in a step")
	flags.IntVar(&o.images, "images", 1024, "images to train with; a quarter as many are for the test")
	flags.IntVar(&o.epochs, "epochs", 4, "how often each image is trained with")
	flags.Float64Var(&o.rate, "rate", 4e-3, "learning rate")
	flags.Uint64Var(&o.seed, "seed", 1, "of images and weights: one seed has one result, bit for bit")
	flags.BoolVar(&o.graph, "graph", false, "capture a step as a CUDA graph, and launch that")
	if err := flags.Parse(args, stderr); err != nil {
		return o, err
	}
	const most = 1 << 20
	if min(o.hidden, o.batch, o.epochs) < 1 || o.images/4 < o.batch || max(o.hidden, o.images, o.epochs) > most {
		return o, command.Misuse("want -hidden, -batch and -epochs from 1, -images from four batches, and all of them up to %d", most)
	}
	o.config, err = flags.Config()
	if _, simulated := o.config.Driver.(*sim.Driver); simulated { // one that executes kernels
		o.config.Driver = sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})
	}
	return o, err
}

// open opens the device, and trains on it.
func open(ctx context.Context, o options, out io.Writer) (err error) {
	dev, err := vram.Open(o.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }() // an *InUseError lists buffers that nobody freed
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	c, err := cuda.NewContext(stream)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	operations, err := ops.New(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Synchronize(context.WithoutCancel(ctx)), operations.Close()) }()
	return tensor.Scoped(c, func(s *tensor.Scope) error { // its end frees all tensors
		return train(ctx, s, operations, dev, o, out)
	})
}

// train makes a network and images, trains, and prints the progress.
func train(ctx context.Context, s *tensor.Scope, operations ops.Ops, dev *vram.Device, o options, out io.Writer) (err error) {
	printf := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	random := rand.New(rand.NewPCG(o.seed, 0))
	n, err := newNetwork(s, operations, []int{pixels, o.hidden, classes}, o.batch, o.rate, random)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	printf("%s, driver %s\n%d-%d-%d: %d parameters\n", dev.Info().Name, dev.Info().Driver, pixels, o.hidden, classes, n.parameterCount)
	m := maker{s: s}
	lessons, tests := m.load(random, o.images, o.batch), m.load(random, o.images/4, o.batch)
	if m.err != nil {
		return m.err
	}
	for epoch := range o.epochs {
		random.Shuffle(len(lessons), func(i, j int) { lessons[i], lessons[j] = lessons[j], lessons[i] })
		start, before := time.Now(), costsOf(dev)
		if err := n.submit(ctx, s.Context(), lessons, o.graph); err != nil {
			return err
		}
		after := costsOf(dev)
		total, err := tensor.Item[float32](n.total) // waits
		if err != nil {
			return err
		}
		steps, seconds := float64(len(lessons)), time.Since(start).Seconds()
		counts, accuracy, err := n.test(s, tests)
		if err != nil {
			return err
		}
		printf("epoch %d: loss %.9g, accuracy %.1f %%, %.0f images/s; allocations a step: %.1f heap, %.1f vram, %.1f driver\n", epoch+1,
			total/float32(steps), 100*accuracy, steps*float64(o.batch)/seconds,
			float64(after.heap-before.heap)/steps, float64(after.vram-before.vram)/steps, float64(after.driver-before.driver)/steps)
		if epoch == o.epochs-1 {
			printf("read wrongly: %v\n", counts)
		}
	}
	stats := dev.Stats()
	printf("device memory: %s live, %s held, at most %s\n", humanize.IBytes(uint64(stats.LiveBytes)),
		humanize.IBytes(uint64(stats.ReservedBytes)), humanize.IBytes(uint64(stats.PeakReservedBytes)))
	return nil
}

// costs counts allocations on Go's heap and of vram, and the driver calls of the latter.
type costs struct{ heap, vram, driver uint64 }

func costsOf(dev *vram.Device) costs {
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	stats := dev.Stats()
	return costs{heap.Mallocs, stats.AllocCount, stats.DriverCalls}
}
