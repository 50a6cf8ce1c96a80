package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/ops"
	"github.com/go-vram/vram/tensor"
)

// train makes a network and images, trains, and prints how that goes.
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
		taken, accuracy, err := n.test(s, tests)
		if err != nil {
			return err
		}
		printf("epoch %d: loss %.9g, accuracy %.1f %%, %.0f images/s; allocations a step: %.1f heap, %.1f vram, %.1f driver\n", epoch+1,
			total/float32(steps), 100*accuracy, steps*float64(o.batch)/seconds,
			float64(after.heap-before.heap)/steps, float64(after.vram-before.vram)/steps, float64(after.driver-before.driver)/steps)
		if epoch == o.epochs-1 {
			printf("%v\n", taken)
		}
	}
	stats := dev.Stats()
	printf("device memory: %s live, %s held, at most %s\n", humanize.IBytes(uint64(stats.LiveBytes)),
		humanize.IBytes(uint64(stats.ReservedBytes)), humanize.IBytes(uint64(stats.PeakReservedBytes)))
	return nil
}

// costs count allocations on Go's heap and of vram, and the driver's calls that they made.
type costs struct{ heap, vram, driver uint64 }

func costsOf(dev *vram.Device) costs {
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	stats := dev.Stats()
	return costs{heap.Mallocs, stats.AllocCount, stats.DriverCalls}
}

// batch is images on the device, and the digits that they show, there and on the host.
type batch struct {
	images, targets *tensor.Tensor
	digits          []int64
}

// load draws images and copies them to the device. Each batch is a view.
func (m *maker) load(random *rand.Rand, count, size int) []batch {
	pictures, digits := draw(random, count/size*size)
	images := m.made(tensor.From(m.s, pictures, count/size, size, pixels))
	targets := m.made(tensor.From(m.s, digits, count/size, size))
	all := make([]batch, count/size)
	for i := range all {
		all[i] = batch{m.made(images.Index(0, i)), m.made(targets.Index(0, i)), digits[i*size:][:size]}
	}
	return all
}

// submit submits a step for each batch. It does not wait.
func (n *network) submit(ctx context.Context, c *cuda.Context, all []batch, graphs bool) error {
	err := n.FillInto(c, n.total, 0)
	for _, b := range all {
		err = errors.Join(err, ctx.Err(), tensor.Copy(c, n.images, b.images), tensor.Copy(c, n.targets, b.targets))
		if err == nil {
			err = n.next(c, graphs)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// test counts as what digits are taken.
func (n *network) test(at tensor.Context, all []batch) (taken confusion, accuracy float64, err error) {
	for _, b := range all {
		err := errors.Join(tensor.Copy(at, n.images, b.images), n.forward(at), n.ArgMaxInto(at, n.found, n.last().out, -1))
		if err != nil {
			return taken, 0, err
		}
		found, err := tensor.Read[int64](n.found)
		if err != nil {
			return taken, 0, err
		}
		for i, digit := range b.digits {
			taken[digit][found[i]]++
			if found[i] == digit {
				accuracy += 1 / float64(len(all)*len(b.digits))
			}
		}
	}
	return taken, accuracy, nil
}

// confusion counts how often a digit, the first index, was taken for another one.
type confusion [classes][classes]int

// String names the mistakes.
func (c confusion) String() string {
	text := "mistakes:"
	for digit, row := range c {
		for other, count := range row {
			if digit != other && count > 0 {
				text += fmt.Sprintf(" %d for %d %dx", other, digit, count)
			}
		}
	}
	return text
}
