package streams

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/recoveredtest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// A refusal whose error is to name the largest buffers waits for the turns of other streams, and the
// goroutine that performs its stream's effects does not: else two streams that refuse at once would wait for
// each other.
func TestARefusalWaitsOffItsStream(t *testing.T) {
	r := newRig(t, 64*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	large := must(t, s, 32*mib)
	leave := r.occupy(other)

	refused := s.request(Request{Bytes: kib})
	refused.promise.On(s.host)
	short := &pool.OutOfMemoryError{RequestedBytes: kib}
	e := &effects{stream: &s.wiring}
	effect.Push(&e.consults, consulting{largest: &short.Largest, refused: &refused.claim, failed: short})
	performed := make(chan bool, 1)
	go func() { performed <- e.finish() }()
	select {
	case more := <-performed:
		assert.True(t, more)
	case <-time.After(time.Minute):
		assert.Fail(t, "the effect waits for the turn of another stream")
	}
	assert.True(t, refused.promise.Pending())

	leave()
	_, err := refused.promise.Await(t.Context())
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	require.Len(t, short.Largest, 1)
	assert.Equal(t, large.Ptr(), short.Largest[0].Ptr)
	require.NoError(t, large.Free())
	r.balanced(s, other)
}

// A refusal that comes soon after a look names the buffers of that look at once, and waits for no turn.
func TestARefusalNamesTheBuffersOfTheLastLook(t *testing.T) {
	t.Parallel()
	r, s, other := pair(t, 64*mib)
	large := must(t, s, 32*mib)
	require.Len(t, r.peers.Largest(), 1)
	leave := sync.OnceFunc(r.occupy(other))
	defer leave()
	refused := s.request(Request{Bytes: kib})
	short := &pool.OutOfMemoryError{RequestedBytes: kib}
	e := &effects{stream: &s.wiring}
	effect.Push(&e.consults, consulting{largest: &short.Largest, refused: &refused.claim, failed: short})
	require.True(t, e.finish())
	_, completed, err := refused.promise.Future().Poll()
	require.True(t, completed)
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	require.Len(t, short.Largest, 1)
	assert.Equal(t, large.Ptr(), short.Largest[0].Ptr)
	leave()
	require.NoError(t, large.Free())
}

// While one goroutine looks for the largest buffers, and waits for a turn, others that may wait get its list, and one that may not
// gets none at once.
func TestWhoWaitsForALookAtBuffers(t *testing.T) {
	t.Parallel()
	r, _, other := pair(t, 64*mib)
	large := must(t, other, 32*mib)
	leave := sync.OnceFunc(r.occupy(other))
	defer leave()
	lists := make(chan []LiveBuffer, 2)
	look := func() { lists <- r.peers.Largest() }
	go look()
	r.until(func() bool { return r.peers.found.Load() != nil })
	go look()
	impatient := make(chan []LiveBuffer, 1)
	go func() { impatient <- r.peers.largest(nil, false) }()
	r.until(func() bool { return len(impatient) == 1 })
	assert.Nil(t, <-impatient)
	assert.Empty(t, lists)
	leave()
	for range cap(lists) {
		require.Len(t, <-lists, 1)
	}
	assert.Len(t, r.peers.largest(nil, false), 1, "the look has ended")
	require.NoError(t, large.Free())
}

// The device's handler, and the caller, get a refusal of the driver with all facts: it is completed before, once for each, in no turn. A
// panic of the handler is part of the error, and so is the end of its goroutine; it is not asked again. A completion that ends the
// goroutine keeps nobody from an answer.
func TestARefusalIsCompletedBeforeTheHandlerHasIt(t *testing.T) {
	t.Parallel()
	recoveredtest.Expect(t, "OnOutOfMemory: the function ended its goroutine")
	for handler, want := range map[string]string{
		"none": "", "refuses": "", "panics": "vram: OnOutOfMemory panicked: planted: mine",
		"ends": "vram: OnOutOfMemory panicked: the function ended its goroutine",
	} {
		for _, completionEnds := range []bool{false, true} {
			r := newRig(t, 64*mib)
			s := r.stream(core.Budget{})
			var completed, handled []*pool.OutOfMemoryError
			s.complete = func(short *pool.OutOfMemoryError) {
				r.quiet(s)
				completed = append(completed, short)
				if completionEnds {
					runtime.Goexit()
				}
			}
			if handler != "none" {
				s.handler = func(short *pool.OutOfMemoryError) bool {
					assert.Contains(t, completed, short)
					assert.Equal(t, "named", short.Tag)
					handled = append(handled, short)
					switch handler {
					case "panics":
						panic(recoveredtest.Planted("mine"))
					case "ends":
						runtime.Goexit()
					}
					return false
				}
			}
			require.NoError(t, r.faults.Add(fault.Rule{Func: "cuMemCreate", Result: cudadrv.OutOfMemory}))
			_, err := s.AllocFor(t.Context(), Request{Bytes: 8 * mib, Tag: "named"})
			var short *pool.OutOfMemoryError
			require.ErrorAs(t, err, &short)
			require.Error(t, short.Cause)
			assert.Contains(t, completed, short)
			assert.Len(t, handled, map[string]int{"none": 0, "refuses": 1, "panics": 1, "ends": 1}[handler])
			assert.Equal(t, want != "", strings.Contains(err.Error(), "OnOutOfMemory"))
			assert.ErrorContains(t, err, want)
		}
	}
}

// A look at buffers that ends its goroutine, as an observer's function may in the turn that it takes, holds up no later look.
func TestALookThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 64*mib)
	large := must(t, s, 32*mib)
	s.peer.entry = endingTurn{s.peer.entry}
	var look sync.WaitGroup
	look.Go(func() {
		r.peers.Largest()
		assert.Fail(t, "the goroutine continues")
	})
	look.Wait()
	r.peers.Largest()
	s.peer.entry = s.peer.entry.(endingTurn).peerTurn
	r.peers.expire()
	assert.Len(t, r.peers.Largest(), 1)
	require.NoError(t, large.Free())
}

// endingTurn ends the goroutine of a look at buffers, or at fences.
type endingTurn struct{ peerTurn }

func (endingTurn) largestBlocks(*core.Largest, bool) { runtime.Goexit() }

func (endingTurn) pendingFences() ([]fencing, error) {
	runtime.Goexit()
	return nil, nil
}
