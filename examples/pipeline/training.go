package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/internal/kernels"
	"github.com/go-vram/vram/examples/internal/schedule"
)

// training has the devices and the stages that train on them.
type training struct {
	options options
	device  *vram.Device // the first
	gpu     *gpu         // its view, and the clock
	devices []*vram.Device
	gpus    []*gpu
	stages  []*stage // stage i is on device i mod len(devices)

	stepEnds  atomic.Int64
	firstStep vram.Stats // after the cold step
	began     time.Duration
	elapsed   time.Duration // device time of the steps
	wall      time.Duration // the same on this machine's clock
}

// open opens the device and loads the stages; the caller closes the training, also after an error.
func open(ctx context.Context, o options) (*training, error) {
	t := &training{options: o}
	r, err := openRecording()
	if err != nil {
		return t, err
	}
	if limitBytes := o.limit.For(r.peakLiveBytes); limitBytes > 0 {
		o.config.LimitBytes = limitBytes
	}
	for range max(1, o.devices) {
		if err := t.openDevice(o); err != nil {
			return t, err
		}
		o.config.Ordinal++
	}
	t.device, t.gpu = t.devices[0], t.gpus[0]
	clockCost := costOfClock()
	for n := range stageCount {
		on := n % len(t.devices)
		stream, err := t.devices[on].NewStream()
		if err != nil {
			return t, err
		}
		stream.Exclusive() // the stage's goroutine alone uses it
		st := &stage{
			number: n, recording: r, turns: schedule.OneF1B(n, stageCount, microBatchCount, o.mostAhead),
			stream: stream, gpu: t.gpus[on], patient: o.patient, waits: waits{clockCost: clockCost}, stepEnd: t.stepEnd,
		}
		st.activations, st.gradients = inlet{stage: st}, inlet{stage: st}
		if n > 0 {
			previous := t.stages[n-1]
			st.activations.road, previous.gradients.road = newRoad(previous.stream, stream), newRoad(stream, previous.stream)
			previous.toNext, st.toPrevious = st.activations.road, previous.gradients.road
		}
		t.stages = append(t.stages, st)
	}
	for _, st := range t.stages {
		if err := st.load(ctx); err != nil {
			return t, err
		}
	}
	return t, nil
}

// openDevice opens a device and a view of it.
func (t *training) openDevice(o options) error {
	device, err := vram.Open(o.config)
	if err != nil {
		return err
	}
	t.devices = append(t.devices, device)
	view, err := kernels.OpenView(o.config.Driver, o.config.Ordinal)
	if err != nil {
		return err
	}
	t.gpus = append(t.gpus, &gpu{view, o.speed})
	return nil
}

// stepEnd is called by each stage at the end of its step. No stage ends its second step before all have
// ended the first, since it needs their activations and gradients.
func (t *training) stepEnd() {
	if t.stepEnds.Add(1) == stageCount {
		t.firstStep = t.stats()
	}
}

// run trains. It returns when all stages have stopped and the device has finished their work: nil, the error of
// the first failed stage, or the cause of ctx's end.
func (t *training) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stages sync.WaitGroup
	start := time.Now()
	t.began = t.gpu.Now()
	for _, st := range t.stages {
		stages.Go(func() {
			if err := errors.Join(st.run(ctx, t.options.stepCount), st.finish()); err != nil {
				cancel(err) // the others stop; the first cause stays
			}
		})
	}
	stages.Wait()
	t.elapsed, t.wall = t.gpu.Now()-t.began, time.Since(start)
	return context.Cause(ctx)
}

// stepCount returns the number of steps that all stages have ended.
func (t *training) stepCount() int { return int(t.stepEnds.Load()) / stageCount }

// close frees the buffers and closes streams and devices. The error of a device lists live buffers.
func (t *training) close() error {
	var errs []error
	for _, st := range t.stages {
		if err := st.release(); err != nil {
			errs = append(errs, fmt.Errorf("stage %d: %w", st.number, err))
		}
	}
	for _, g := range t.gpus {
		errs = append(errs, g.Close())
	}
	for _, d := range t.devices {
		errs = append(errs, d.Close()) // closes the streams
	}
	return errors.Join(errs...)
}

// costOfClock returns the time of reading the clock once, which is a part of every measured time. It is the least of several
// tries, so that it excludes other load of the machine.
func costOfClock() time.Duration {
	const tries, readings = 20, 1000
	least := time.Duration(math.MaxInt64)
	for range tries {
		start := time.Now()
		for range readings {
			_ = time.Now()
		}
		least = min(least, time.Since(start))
	}
	return least / readings
}
