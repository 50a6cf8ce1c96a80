// Command batch trains GPT-2's parameters with Adam, and allocates each step's buffers together: the gradients of all
// parameters in one all-or-nothing batch before the backward pass, as it does the parameters and both moments at the start. For
// comparison the same training allocates each gradient when the backward pass reaches it, and frees activations in between.
//
//	batch [-steps 200] [-driver auto] [-device 0] [-limit 2GB]
//
// It shows two advantages of a batch:
//
//   - Locality: buffers of a batch are neighbours if possible. One memset zeroes neighbouring gradients, and one kernel updates
//     tensors that are neighbours in parameters, gradients and moments.
//   - All or nothing: if the limit leaves no room for all gradients, the failed step holds none of them, and continues with
//     half of the bytes at a time. There is nothing to free first.
//
// The scenario batch of `vram bench` measures the time that a batch saves. Kernels are durations on the simulated device, and
// memsets on a GPU.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/internal/command"
	"github.com/go-vram/vram/examples/internal/kernels"
)

func main() { os.Exit(command.Interruptible(run)) }

// run executes the program and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err == nil {
		err = compare(ctx, o, stdout)
	}
	return command.Exit(ctx, "batch", err, stderr)
}

// options are the settings of the command line and the environment.
type options struct {
	stepCount int
	config    vram.Config
}

// parse reads the flags over the environment over the defaults. Its error is flag.ErrHelp or a *command.UsageError; help goes
// to stderr.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := command.NewFlags("batch", `"2GB"`)
	flags.IntVar(&o.stepCount, "steps", 200, "optimizer steps in each manner")
	if err := flags.Parse(args, stderr); err != nil {
		return o, err
	}
	if o.stepCount < 1 {
		return o, command.Misuse("-steps is %d, want 1 or more", o.stepCount)
	}
	o.config, err = flags.Config()
	return o, err
}

// compare trains in both ways, one after the other, and prints the figures.
func compare(ctx context.Context, o options, stdout io.Writer) (err error) {
	device, err := vram.Open(o.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	view, err := kernels.OpenView(o.config.Driver, o.config.Ordinal)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	tensors := gpt2().parameters()
	var sumBytes int64
	for _, p := range tensors {
		sumBytes += p.bytes
	}
	info := device.Info()
	_, _ = fmt.Fprintf(stdout, "%s, driver %s\n%d parameters of %s in all, %d steps in each manner\n\n",
		info.Name, info.Driver, len(tensors), humanize.IBytes(uint64(sumBytes)), o.stepCount)
	var rows []figures
	for _, together := range []bool{false, true} {
		f, err := train(ctx, device, view, together, tensors, o.stepCount)
		if err != nil {
			return err
		}
		rows = append(rows, f)
	}
	_, err = fmt.Fprint(stdout, report(rows, device.Stats()))
	return err
}

// train runs an optimizer for a number of steps on a new stream.
func train(ctx context.Context, d *vram.Device, g *kernels.View, together bool, tensors []tensor, stepCount int) (f figures, err error) {
	s, err := d.NewStream()
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	o, err := newOptimizer(g, s, together, tensors)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	for n := range stepCount {
		if err := o.step(ctx); err != nil {
			return f, fmt.Errorf("step %d: %w", n+1, err)
		}
	}
	return o.figures, nil
}

// report prints a table of both ways, and the device's statistics.
func report(rows []figures, stats vram.Stats) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"gradients", "parts", "memsets", "kernels", "host ms", "ms"})
	for _, f := range rows {
		manner := "one by one"
		if f.together {
			manner = "in batches"
		}
		each := func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()*1000/float64(f.stepCount)) }
		t.AppendRow(table.Row{manner, f.partCount, f.memsetCount, f.kernelCount, each(f.hostTime), each(f.stepTime)})
	}
	t.SetStyle(table.StyleLight)
	return fmt.Sprintf("%s\nOf a step: parts, more than one where memory is short; memsets\nthat clear the gradients; kernels of the update; time until all\n"+
		"is submitted, and until the device is through.\npeaks: %s live, %s reserved; %d driver calls\n", t.Render(),
		humanize.IBytes(uint64(stats.PeakLiveBytes)), humanize.IBytes(uint64(stats.PeakReservedBytes)), stats.DriverCalls)
}
