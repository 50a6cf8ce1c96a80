package kernelbench

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cudadrv"
)

// sample is the time of one operation of many.
type sample struct{ wallMicros, eventMicros, allocs float64 }

// Bounds of a sample. lab/peers/torch_kernels.py has the same.
const (
	minOperations = 2
	// maxOperations keeps below the launches that the driver queues, 1024: a launch that finds the queue full waits.
	maxOperations = 400
	// graphMicros is the least time of a graph, to make its launch negligible. It has 2 to 20 nodes, or one for each set.
	graphMicros   = 2000
	maxGraphNodes = 20
)

// way is how a row's operation is computed.
type way struct {
	name   string // before the path
	choice matmul.Choice
}

// operation measures an operation, launched and in a graph, by each way that there is.
func (b *rig) operation(w workload) (rows []Row, err error) {
	ways := []way{{}}
	if w.multiplies() {
		ways = []way{{"library ", matmul.Library}, {"own ", matmul.Own}}
	}
	for _, by := range ways {
		measured, err := b.way(w, by)
		var absent *cublaslt.AbsentError
		if errors.Is(err, matmul.ErrUnsupported) || errors.Is(err, cublaslt.ErrUnsupported) || errors.As(err, &absent) ||
			b.options.simulated && errors.Is(err, cudadrv.NotSupported) { // this machine has the library, which needs a GPU
			missing := w.figure(by.name+PathLaunched, b.shape(w), nil)
			if of, ok := errors.AsType[*ops.Error](err); ok {
				err = of.Unwrap() // the row says which operation
			}
			missing.Missing = err.Error()
			measured, err = []Row{missing}, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, measured...)
	}
	return rows, nil
}

// way checks and measures one way.
func (b *rig) way(w workload, by way) (rows []Row, err error) {
	shape := b.shape(w)
	err = tensor.Scoped(b.c, func(s *tensor.Scope) error {
		sets := max(w.Sets, 1)
		if b.options.simulated {
			sets = min(sets, 2)
		}
		jobs := make([]*job, sets)
		for i := range jobs {
			var err error
			if jobs[i], err = b.job(s, w, shape, by.choice); err != nil {
				return err
			}
			if err = jobs[i].run(); err != nil {
				return err
			}
			if err = jobs[i].check(); err != nil {
				return err
			}
		}
		launched := func(i int) error { return jobs[i%len(jobs)].run() }
		single, err := b.samples(1, launched)
		if err != nil {
			return err
		}
		row := w.figure(by.name+PathLaunched, shape, single)
		row.By = jobs[0].by
		rows = append(rows, row)

		nodes := max(len(jobs), min(maxGraphNodes, max(minOperations, int(graphMicros/max(row.Event, 1e-3)))))
		if b.options.simulated {
			nodes = len(jobs) + 1
		}
		graph, err := b.c.Capture(func() error {
			for i := range nodes {
				if err := launched(i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		replayed, err := b.samples(nodes, func(int) error { return graph.Launch(b.c) })
		if err == nil {
			err = jobs[0].check()
		}
		if err = errors.Join(err, graph.Close()); err != nil {
			return err
		}
		row = w.figure(by.name+PathGraph, shape, replayed)
		row.By = jobs[0].by
		rows = append(rows, row)
		return nil
	})
	return rows, err
}

// samples returns the times of an operation of which a submission has several. The first ones warm up, and say how many
// submissions a sample has.
func (b *rig) samples(each int, submit func(i int) error) ([]sample, error) {
	wanted := b.options.RepetitionTime / repetitionSamples
	if b.options.simulated {
		return b.sampled(2, each, 2, submit)
	}
	count := minOperations
	for range 4 {
		trial, err := b.sampled(1, each, count, submit)
		if err != nil {
			return nil, err
		}
		micros := trial[0].wallMicros * float64(each)
		count = min(maxOperations, max(minOperations, int(float64(wanted.Nanoseconds())/1e3/max(micros, 0.1))))
	}
	return b.sampled(b.options.Repetitions*repetitionSamples, each, count, submit)
}

// sampled takes samples of so many submissions each.
func (b *rig) sampled(samples, each, count int, submit func(i int) error) ([]sample, error) {
	all := make([]sample, samples)
	for i := range all {
		if err := b.sample(&all[i], float64(each*count), count, submit); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (b *rig) sample(s *sample, operations float64, count int, submit func(i int) error) (err error) {
	if err := b.c.Synchronize(b.ctx); err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	from := time.Now()
	start, err := b.c.Record()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, start.Close()) }()
	for i := range count {
		if err := submit(i); err != nil {
			return err
		}
	}
	end, err := b.c.Record()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end.Close()) }()
	if err := b.reach(end); err != nil {
		return err
	}
	took := time.Since(from)
	runtime.ReadMemStats(&after)
	device, err := end.Since(start)
	s.wallMicros = micros(took) / operations
	s.eventMicros = micros(device) / operations
	s.allocs = float64(after.Mallocs-before.Mallocs) / operations
	return err
}

// reach waits until the device has come to an event. On a GPU it asks again and again, as PyTorch's wait does: a goroutine that
// sleeps is woken too late for a sample of a millisecond.
func (b *rig) reach(e *cuda.Event) error {
	if b.options.simulated {
		return e.Synchronize(b.ctx)
	}
	for {
		done, err := e.Done()
		if err != nil || done {
			return err
		}
		if b.ctx.Err() != nil {
			return context.Cause(b.ctx)
		}
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
