package bench

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-vram/vram"
)

// buffer and source are the common parts of the two implementations.
type buffer interface{ Free() error }

type source[B buffer] interface {
	Alloc(bytes int64) (B, error)
}

// worker is one goroutine's hands on an implementation. It is used by one goroutine at a time.
type worker interface {
	// pairs allocates and frees the size, count times.
	pairs(sizeBytes int64, count int) error
	// lifo allocates depth buffers and then frees them, the last first. Where nanos is not nil it has
	// depth places, each for the time of the two calls of one buffer.
	lifo(sizeBytes int64, depth int, nanos []float64) error
	// paced takes the time of len(nanos) requests, an allocation and its free in turn, and works for a
	// while before each.
	paced(sizeBytes int64, between time.Duration, nanos []float64) error
	// fill allocates count live buffers of the sequence's sizes.
	fill(seq *sequence, count int) error
	// churn frees a live buffer and allocates one, count times.
	churn(seq *sequence, count int) error
	// drain frees the live buffers.
	drain() error
	// sized is pairs with the sequence's sizes.
	sized(seq *sequence, count int) error
	// dig allocates holes of sizes that draw returns, with a live buffer after each, and frees them.
	dig(count int, draw func(r *rand.Rand) int64, wallBytes int64) error
}

// hands is a worker for any implementation. Its calls go through a dictionary, which costs a
// nanosecond or two: the shortest loops are written out below.
type hands[B buffer, S source[B]] struct {
	from S
	live []B
}

func (h *hands[B, S]) lifo(sizeBytes int64, depth int, nanos []float64) error {
	if cap(h.live) < depth {
		h.live = make([]B, 0, depth)
	}
	if nanos != nil {
		return h.timedLIFO(sizeBytes, depth, nanos)
	}
	live := h.live[:0]
	for range depth {
		b, err := h.from.Alloc(sizeBytes)
		if err != nil {
			return err
		}
		live = append(live, b)
	}
	for i := depth - 1; i >= 0; i-- {
		if err := live[i].Free(); err != nil {
			return err
		}
	}
	return nil
}

func (h *hands[B, S]) timedLIFO(sizeBytes int64, depth int, nanos []float64) error {
	live := h.live[:0]
	for i := range depth {
		start := time.Now()
		b, err := h.from.Alloc(sizeBytes)
		nanos[i] = float64(time.Since(start))
		if err != nil {
			return err
		}
		live = append(live, b)
	}
	for i := depth - 1; i >= 0; i-- {
		start := time.Now()
		err := live[i].Free()
		nanos[i] += float64(time.Since(start))
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *hands[B, S]) paced(sizeBytes int64, between time.Duration, nanos []float64) error {
	for i := 0; i < len(nanos); i += 2 {
		work(between)
		start := time.Now()
		b, err := h.from.Alloc(sizeBytes)
		nanos[i] = float64(time.Since(start))
		if err != nil {
			return err
		}
		work(between)
		start = time.Now()
		err = b.Free()
		took := float64(time.Since(start))
		if err != nil {
			return err
		}
		if i+1 < len(nanos) {
			nanos[i+1] = took
		}
	}
	return nil
}

func (h *hands[B, S]) fill(seq *sequence, count int) error {
	h.live = make([]B, 0, count)
	for range count {
		sizeBytes, _ := seq.next()
		b, err := h.from.Alloc(sizeBytes)
		if err != nil {
			return err
		}
		h.live = append(h.live, b)
	}
	return nil
}

func (h *hands[B, S]) churn(seq *sequence, count int) error {
	live := h.live
	for range count {
		sizeBytes, victim := seq.next()
		if err := live[victim].Free(); err != nil {
			return err
		}
		b, err := h.from.Alloc(sizeBytes)
		if err != nil {
			return err
		}
		live[victim] = b
	}
	return nil
}

func (h *hands[B, S]) drain() error {
	var errs []error
	for _, b := range h.live {
		errs = append(errs, b.Free())
	}
	h.live = nil
	return errors.Join(errs...)
}

func (h *hands[B, S]) sized(seq *sequence, count int) error {
	for range count {
		sizeBytes, _ := seq.next()
		b, err := h.from.Alloc(sizeBytes)
		if err != nil {
			return err
		}
		if err := b.Free(); err != nil {
			return err
		}
	}
	return nil
}

// vramHands is hands with the shortest loop written out.
type vramHands struct {
	hands[vram.Buffer, *vram.Stream]
}

func newVRAMHands(s *vram.Stream) *vramHands {
	return &vramHands{hands[vram.Buffer, *vram.Stream]{from: s}}
}

func (h *vramHands) pairs(sizeBytes int64, count int) error {
	s := h.from
	for range count {
		b, err := s.Alloc(sizeBytes)
		if err != nil {
			return err
		}
		if err := b.Free(); err != nil {
			return err
		}
	}
	return nil
}

type mutexHands struct {
	hands[mutexBuffer, *mutexHeap]
}

func newMutexHands(heap *mutexHeap) *mutexHands {
	return &mutexHands{hands[mutexBuffer, *mutexHeap]{from: heap}}
}

func (h *mutexHands) pairs(sizeBytes int64, count int) error {
	heap := h.from
	for range count {
		b, err := heap.Alloc(sizeBytes)
		if err != nil {
			return err
		}
		if err := b.Free(); err != nil {
			return err
		}
	}
	return nil
}
