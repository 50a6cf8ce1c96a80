package kernelbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// Options configures a run. NewDriver must be set.
type Options struct {
	NewDriver      func() cudadrv.Driver
	Config         vram.Config   // of the device; Driver is set by Run
	Rows           []string      // prefixes of the names of rows; empty: all
	Repetitions    int           // of five samples each; 0: 7
	RepetitionTime time.Duration // 0: 20 ms
	// Start starts a process that prepares kernels, and returns its measurement; nil: this process does it.
	Start func(ctx context.Context, o StartOptions) (Start, error)

	simulated bool
}

const (
	defaultRepetitions = 7
	defaultTime        = 20 * time.Millisecond
	// repetitionSamples are the samples of a repetition: enough for percentiles, and each of some milliseconds.
	repetitionSamples = 5
)

// Check says which of the options cannot be, before anything is opened.
func (o *Options) Check() error {
	l, err := readList()
	if err == nil {
		_, err = chosen(l.Rows, o.Rows)
	}
	return err
}

// SimulatedDriver makes a simulated driver that executes kernels.
func SimulatedDriver() cudadrv.Driver {
	return sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})
}

// Run measures the rows one after the other. It ends early, with an error, where an operation fails, a result is wrong, or ctx
// ends. A row that this machine cannot measure says why. The device is closed when it returns.
func Run(ctx context.Context, o Options) (rows []Row, err error) {
	l, err := readList()
	if err != nil {
		return nil, err
	}
	some, err := chosen(l.Rows, o.Rows)
	if err != nil {
		return nil, err
	}
	if o.Repetitions == 0 {
		o.Repetitions = defaultRepetitions
	}
	if o.RepetitionTime == 0 {
		o.RepetitionTime = defaultTime
	}
	o.Config.Driver = o.NewDriver()
	_, o.simulated = o.Config.Driver.(*sim.Driver)
	b, err := newRig(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }() //nolint:contextcheck // open resources are closed, also when ctx has ended
	for _, w := range some {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		measured, err := b.row(w) //nolint:contextcheck // the rig has it
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.Row, err)
		}
		for i := range measured {
			measured[i] = w.judged(measured[i], o.simulated)
		}
		rows = append(rows, measured...)
	}
	return rows, nil
}

// row measures one row, all of its paths.
func (b *rig) row(w workload) ([]Row, error) {
	switch w.Op {
	case opLaunch:
		return b.launch(w)
	case opStart:
		return b.start(w)
	}
	return b.operation(w)
}

// shape returns the shape of a row on this device.
func (b *rig) shape(w workload) []int {
	if b.options.simulated {
		return w.Small
	}
	return w.Shape
}
