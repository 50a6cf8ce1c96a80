package bench

import (
	"runtime"
	"sync/atomic"
	"time"
)

// handoff is a producer that allocates and a consumer that frees. Each runs on a goroutine of its
// own, both with the same count; nanos, where not nil, has count places for the time of the calls.
type handoff interface {
	produce(sizeBytes int64, count int, nanos []float64) error
	consume(count int, nanos []float64) error
}

// ring is a queue between one producer and one consumer, with a cache line for each of them.
type ring[B any] struct {
	slots  []B
	failed atomic.Bool // one side gave up
	_      [128]byte
	pushed atomic.Uint64 // written by the producer
	_      [128]byte
	popped atomic.Uint64 // written by the consumer
}

// newRing has room for depth, a power of two.
func newRing[B any](depth int) *ring[B] { return &ring[B]{slots: make([]B, depth)} }

// push waits for room; false where the other side gave up.
func (r *ring[B]) push(b B) bool {
	at := r.pushed.Load()
	for at-r.popped.Load() == uint64(len(r.slots)) {
		if r.failed.Load() {
			return false
		}
		runtime.Gosched()
	}
	r.slots[at&uint64(len(r.slots)-1)] = b
	r.pushed.Store(at + 1)
	return true
}

// pop waits for a buffer; false where the other side gave up.
func (r *ring[B]) pop() (B, bool) {
	at := r.popped.Load()
	for at == r.pushed.Load() {
		if r.failed.Load() {
			var none B
			return none, false
		}
		runtime.Gosched()
	}
	b := r.slots[at&uint64(len(r.slots)-1)]
	r.popped.Store(at + 1)
	return b, true
}

type pipe[B buffer, S source[B]] struct {
	from S
	ring *ring[B]
}

func (p *pipe[B, S]) produce(sizeBytes int64, count int, nanos []float64) error {
	var start time.Time
	for i := range count {
		if nanos != nil {
			start = time.Now()
		}
		b, err := p.from.Alloc(sizeBytes)
		if nanos != nil {
			nanos[i] = float64(time.Since(start))
		}
		if err != nil {
			p.ring.failed.Store(true)
			return err
		}
		if !p.ring.push(b) {
			return b.Free() // the consumer's error is the news
		}
	}
	return nil
}

func (p *pipe[B, S]) consume(count int, nanos []float64) error {
	var start time.Time
	for i := range count {
		b, ok := p.ring.pop()
		if !ok {
			return nil // the producer's error is the news
		}
		if nanos != nil {
			start = time.Now()
		}
		err := b.Free()
		if nanos != nil {
			nanos[i] = float64(time.Since(start))
		}
		if err != nil {
			p.ring.failed.Store(true)
			return err
		}
	}
	return nil
}
