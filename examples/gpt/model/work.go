package model

import (
	"context"
	"errors"
	"time"

	"github.com/go-vram/vram/cuda"
)

// workDepth is the number of operations that a stage submits after the running one. Not fewer: a goroutine wakes up late, and the
// stream would run empty. Not more: parcels are given back as much later.
const workDepth = 2

// work bounds how far a stage's goroutine is ahead of its stream, and measures how long the stream computes.
type work struct {
	on       *cuda.Context
	all      []operation
	received []parcel // since the last operation began

	origin *cuda.Event // the begin of the time that is measured
	busy   time.Duration
	waited time.Duration // of the goroutine, for other stages
	since  time.Time
}

// operation is work between two events.
type operation struct {
	begin, end *cuda.Event
	received   []parcel // before it
}

// took keeps a received parcel until the next operation has finished.
func (w *work) took(p parcel) { w.received = append(w.received, p) }

// run waits for room, and submits an operation.
func (w *work) run(submit func() error) error {
	for len(w.all) >= workDepth {
		if err := w.finish(); err != nil {
			return err
		}
	}
	begin, err := w.on.Record()
	if err != nil {
		return err
	}
	if err := submit(); err != nil {
		return errors.Join(err, begin.Close())
	}
	end, err := w.on.Record()
	if err != nil {
		return errors.Join(err, begin.Close())
	}
	w.all = append(w.all, operation{begin, end, w.received})
	w.received = nil
	return nil
}

// finish waits for the oldest operation, and gives back the parcels that it has read.
func (w *work) finish() error {
	o := w.all[0]
	if err := o.end.Synchronize(context.Background()); err != nil {
		return err
	}
	w.all = w.all[1:]
	if took, err := o.end.Since(o.begin); err == nil { // without timed events the goroutine's waits count
		w.busy += took
	}
	err := o.end.Close()
	if w.origin == nil {
		w.origin = o.begin
	} else {
		err = errors.Join(err, o.begin.Close())
	}
	for _, p := range o.received {
		err = errors.Join(err, p.drop())
	}
	return err
}

// drain waits for all operations, and for copies after the last one.
func (w *work) drain() error {
	for len(w.all) > 0 {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if len(w.received) == 0 {
		return nil
	}
	err := w.on.Synchronize(context.Background())
	if err != nil {
		return err
	}
	for _, p := range w.received {
		err = errors.Join(err, p.drop())
	}
	w.received = nil
	return err
}

// share returns the share of the time since the last call in which the stream did not compute; on a device whose kernels take no
// time, in which the goroutine waited for other stages. The work has been drained.
func (w *work) share() (float64, error) {
	idle, all := w.waited, time.Since(w.since)
	var err error
	if w.origin != nil {
		last, failed := w.on.Record()
		if failed != nil {
			return 0, failed
		}
		err = last.Synchronize(context.Background())
		if elapsed, failed := last.Since(w.origin); failed == nil && w.busy > 0 {
			idle, all = elapsed-w.busy, elapsed
		}
		err = errors.Join(err, last.Close(), w.origin.Close())
	}
	w.origin, w.busy, w.waited, w.since = nil, 0, 0, time.Now()
	if err != nil || all <= 0 {
		return 0, err
	}
	return min(1, max(0, idle.Seconds()/all.Seconds())), nil
}

// close closes the remaining events. The stream has finished.
func (w *work) close() (err error) {
	for _, o := range w.all {
		err = errors.Join(err, o.begin.Close(), o.end.Close())
		w.received = append(w.received, o.received...)
	}
	for _, p := range w.received {
		err = errors.Join(err, p.drop())
	}
	if w.origin != nil {
		err = errors.Join(err, w.origin.Close())
	}
	w.all, w.received, w.origin = nil, nil, nil
	return err
}
