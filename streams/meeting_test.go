package streams

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/effect"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/together"
)

const meetCount = 4 // goroutines that meet

// Each call that a capture forbids, each allocation of a hold and each goroutine that waits for a claim is counted once, also where
// several come at the same time.
func TestCountsOfAStreamAmongGoroutines(t *testing.T) {
	t.Parallel()
	const rounds = 50
	r, s, other := pair(t, 16*mib)
	together.Run(meetCount, func(int) {
		for range rounds {
			forbidden(t, s.cuda.forbidden("cuEventRecord"), s, "cuEventRecord")
		}
	})
	assert.EqualValues(t, meetCount*rounds, s.cuda.forbiddenCalls.Load())

	s.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	h, err := submitter(t, s).NewHold()
	require.NoError(t, err)
	before := h.s.cuda.crossings.count.Load()
	together.Run(meetCount, func(number int) {
		for range rounds {
			alloc := h.Alloc
			if number%2 == 0 {
				alloc = func(bytes int64) (Buffer, error) { return h.AllocFor(context.Background(), Request{Bytes: bytes}) }
			}
			b, err := alloc(kib)
			assert.NoError(t, err)
			assert.NoError(t, b.Free())
		}
	})
	assert.EqualValues(t, meetCount*rounds, h.s.cuda.crossings.count.Load()-before)
	require.NoError(t, h.End())

	taken := must(t, other, 14*mib)
	x := s.request(Request{Bytes: 8 * mib, Wait: true})
	s.ref.Tell(&x.claim)
	together.Run(meetCount, func(int) {
		for range rounds {
			x.claim.await(true)
			x.claim.await(false)
		}
	})
	assert.Zero(t, x.awaiting.Load())
	require.NoError(t, taken.Free())
	b, err := x.promise.Future().Await(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Free())
}

// The lock of an order among works that read and works that write lets one write alone, and is free afterwards, also where works did
// not get it.
func TestAnOrderIsLockedAmongGoroutines(t *testing.T) {
	t.Parallel()
	const rounds = 60
	_, home, _ := pair(t, 16*mib)
	o := newOrder(home)
	var reading atomic.Int64
	var written uint64 // guarded by the lock
	together.Run(meetCount, func(number int) {
		for round := range rounds {
			if (number+round)%3 == 0 {
				o.lock(true, nil)
				assert.Zero(t, reading.Load())
				written++
				o.wrote(pastWork{&home.cuda, written})
				o.unlock(true)
				continue
			}
			o.lock(false, nil)
			reading.Add(1)
			assert.Equal(t, written, o.last.count)
			assert.Equal(t, written, o.writes.Load())
			reading.Add(-1)
			o.unlock(false)
		}
	})
	assert.Zero(t, o.works.Load())
	assert.EqualValues(t, meetCount*rounds/3, written)
}

// Of goroutines that settle an order at the same time one counts the works of its stream, and the others have the same count.
func TestAnOrderIsSettledOnceAmongGoroutines(t *testing.T) {
	t.Parallel()
	_, home, _ := pair(t, 16*mib)
	for range 100 {
		o := newOrder(home)
		var counts [meetCount]uint64
		together.Run(meetCount, func(number int) {
			o.settle(nil)
			counts[number] = o.settled.Load()
		})
		for _, n := range counts {
			require.Equal(t, o.settled.Load(), n)
		}
	}
}

// Each wait for a process that has died counts, also where several goroutines are the first that say so.
func TestStrandsAmongGoroutines(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	for range 50 {
		s := r.stream(core.Budget{})
		tail := submitter(t, s).Tail()
		together.Run(meetCount, func(int) {
			tail.MayStrand()
			tail.Strand()
		})
		require.Equal(t, meetCount, tail.strand().now.Load().stuck)
		together.Run(meetCount, func(int) { tail.Unstrand() })
		require.Zero(t, tail.strand().now.Load().stuck)
		require.NoError(t, s.Close())
	}
}

// heldLook is a stream's turn in which a look for its largest blocks waits for another goroutine.
type heldLook struct {
	peerTurn
	look func()
}

func (h heldLook) largestBlocks(*core.Largest, bool) { h.look() }

// A look for the largest buffers that has begun is not dropped by the end of the list before it.
func TestALookMeetsTheEndOfTheLastAmongGoroutines(t *testing.T) {
	t.Parallel()
	for range 200 {
		p := &Peers{}
		var expired atomic.Bool
		look := func() {
			for !expired.Load() {
				runtime.Gosched()
			}
			assert.NotNil(t, p.found.Load())
		}
		p.change(func([]*peer) []*peer { return []*peer{{entry: heldLook{look: look}}} })
		last := &listing{done: make(chan struct{})}
		close(last.done)
		p.found.Store(last)
		together.Run(2, func(number int) {
			if number == 0 {
				p.expire()
				expired.Store(true)
				return
			}
			p.expire()
			p.largest(nil, true)
		})
	}
}

// A turn after the end of the stream returns its effects; those of one whose end panics are performed, and a panic of one of them ends
// nothing else.
func TestTheEffectsOfATurnAfterTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	leave := r.occupy(s)
	cause := errPlanned
	s.turn.ending.failure.Store(&cause)
	var performed atomic.Int32
	push := func() {
		e := s.turn.state.effects()
		effect.Push[filler](&e.fills, filling(func() {
			performed.Add(1)
			panic(recoveredtest.Planted("a defect"))
		}))
		effect.Push[filler](&e.fills, filling(func() { performed.Add(1) }))
	}
	push()
	assert.NotNil(t, s.turn.detach())
	assert.Zero(t, performed.Load())
	push()
	s.turn.lent.state = nil
	assert.Panics(t, func() { s.turn.detach() })
	s.turn.lent.state = &s.turn.state
	r.until(func() bool { return performed.Load() == 2 })
	s.turn.ending.detaching = false
	s.turn.ending.failure.Store(nil)
	leave()
	r.quiet(s)
}

// The fence of memory that is returned is announced until it is recorded, or the stream's work was waited for instead: Close waits for it.
func TestARecordMeetsNoClose(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		r := newRig(t, 16*mib)
		s := r.stream(core.Budget{})
		during := map[string]bool{}
		r.faults.SetBefore(func(function string) { during[function] = s.cuda.calls.Load() == 1 })
		if refused {
			r.fail("cuEventRecord")
		}
		s.cuda.order()
		mark := (&effects{stream: &s.wiring}).record(&outgoingReturn{Return: poolcore.Return{Fence: 1}})
		r.faults.SetBefore(nil)
		r.faults.Clear()
		assert.True(t, during["cuEventRecord"])
		assert.Equal(t, refused, during["cuStreamSynchronize"])
		assert.Zero(t, s.cuda.calls.Load())
		s.cuda.discard(mark)
	}
}
