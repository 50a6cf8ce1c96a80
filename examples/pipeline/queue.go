package main

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
)

// queueDepth is the number of operations that a stage queues after the running one. Not fewer: a goroutine wakes up to a
// millisecond late, and the stream would run empty. Not more: parcels are freed, and the display and an interrupt react, as
// much later.
const queueDepth = 2

// queue bounds how far a stage's goroutine is ahead of its stream.
type queue struct {
	gpu    *gpu
	stream cudadrv.Stream
	slots  [queueDepth]struct {
		begun    cudadrv.Event // recorded after the operation's copy, before its kernels
		parcel   parcel
		occupied bool
		at       turn
	}
	next  int
	begun func(turn) // called for each operation once it has begun on the device
}

func newQueue(g *gpu, stream cudadrv.Stream, begun func(turn)) (*queue, error) {
	q := &queue{gpu: g, stream: stream, begun: begun}
	for i := range q.slots {
		event, err := g.EventCreate()
		if err != nil {
			return nil, errors.Join(err, q.close())
		}
		q.slots[i].begun = event
	}
	return q, nil
}

// room waits until another operation may be queued: until the one queueDepth before it has begun. It drops
// the parcel that this one has copied.
func (q *queue) room() error {
	s := &q.slots[q.next]
	if !s.occupied {
		return nil
	}
	if err := q.gpu.EventSynchronize(s.begun); err != nil {
		return err
	}
	s.occupied = false
	q.begun(s.at)
	if s.parcel == (parcel{}) {
		return nil
	}
	p := s.parcel
	s.parcel = parcel{}
	return p.drop()
}

// add marks the place of an operation in the stream; p is the parcel whose copy was queued for it.
func (q *queue) add(at turn, p parcel) error {
	s := &q.slots[q.next]
	q.next = (q.next + 1) % queueDepth
	s.occupied, s.at, s.parcel = true, at, p
	return q.gpu.EventRecord(s.begun, q.stream)
}

// drain waits for all operations to begin.
func (q *queue) drain() error {
	var errs []error
	for range q.slots {
		errs = append(errs, q.room())
		q.next = (q.next + 1) % queueDepth
	}
	return errors.Join(errs...)
}

// close destroys the events. The queue must have been drained.
func (q *queue) close() error {
	var errs []error
	for i := range q.slots {
		if q.slots[i].begun != 0 {
			errs = append(errs, q.gpu.EventDestroy(q.slots[i].begun))
			q.slots[i].begun = 0
		}
	}
	return errors.Join(errs...)
}
