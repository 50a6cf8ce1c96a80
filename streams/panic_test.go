package streams

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// crash makes the stream panic when it reaches the point for the n-th time, after it has called spoil.
func crash(s *Stream, at point, n int, spoil func()) { s.setHook(crashing(at, n, spoil)) }

// crashing returns a hook that calls spoil and panics when it is called for the point for the n-th time.
func crashing(at point, n int, spoil func()) func(point) {
	return func(p point) {
		if p != at {
			return
		}
		if n--; n == 0 {
			if spoil != nil {
				spoil()
			}
			panic(recoveredtest.Planted("planted"))
		}
	}
}

// async sends a request by message, however idle the stream is.
func async(t *testing.T, r *rig, s *Stream, bytes int64) (Buffer, error) {
	t.Helper()
	leave := r.occupy(s)
	f := s.AllocAsync(context.Background(), Request{Bytes: bytes})
	leave()
	return f.Await(context.Background())
}

// isPanic checks that the error is the turn's panic.
func isPanic(t *testing.T, err error) {
	t.Helper()
	var p *actors.PanicError
	require.ErrorAs(t, err, &p)
	assert.Equal(t, recoveredtest.Planted("planted"), p.Value)
}

// goesOn checks that the stream serves, that no memory was lost and no buffer is live.
func goesOn(t *testing.T, r *rig, s, other *Stream) {
	t.Helper()
	s.setHook(nil)
	n := r.stats(s)
	assert.Zero(t, n.LiveBytes)
	assert.Zero(t, n.LiveCount)
	assert.Zero(t, n.Waiting)
	r.balanced(s, other)
	require.NoError(t, must(t, s, 3*mib).Free())
	require.NoError(t, must(t, s, kib).Free())
	require.NoError(t, must(t, other, 3*mib).Free())
}

// A panic in a turn that serves a request fails that request and nothing else.
func TestPanicBeforeTheSearchFailsTheCurrentRequest(t *testing.T) {
	r := newRig(t, 256*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	crash(s, beforeSearch, 1, nil)
	_, err := async(t, r, s, mib)
	isPanic(t, err)
	goesOn(t, r, s, other)
}

// A block that has a slot already goes back when the turn panics before the request is answered.
func TestPanicBeforeTheAnswerGivesTheBlockBack(t *testing.T) {
	for _, bytes := range []int64{kib, 64 * kib, 70 * kib, 3 * mib} {
		r := newRig(t, 256*mib)
		s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
		require.NoError(t, must(t, s, 32*mib).Free()) // enough for all that follows
		crash(s, beforeAnswer, 1, nil)
		_, err := async(t, r, s, bytes)
		isPanic(t, err)
		assert.Equal(t, uint64(1), r.stats(s).AllocCount, "it does not count")
		goesOn(t, r, s, other)
	}
}

// A panic in the middle of the answer, when the caller may have the buffer already, takes nothing
// back.
func TestAPanicInTheAnswerOfARequest(t *testing.T) {
	for _, bytes := range []int64{kib, 70 * kib, 3 * mib} {
		r := newRig(t, 256*mib)
		s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
		a := s.request(Request{Bytes: bytes})
		a.unwatch = func() { panic(recoveredtest.Planted("planted")) }
		s.ref.Tell(&a.claim)
		b, err := a.promise.Future().Await(context.Background())
		require.NoError(t, err)
		n := r.stats(s) // after the turn that panicked
		assert.Equal(t, uint64(1), n.LiveCount)
		assert.Equal(t, uint64(1), n.AllocCount)
		require.NoError(t, b.Free())
		goesOn(t, r, s, other)
	}
}

// A panic in the turn that the pool's grant began fails the request that it was for, and the pages
// stay with the stream: they are not given back a second time.
func TestPanicInTheTurnOfAGrantFailsItsRequest(t *testing.T) {
	for _, at := range []point{beforeSearch, beforeAnswer} {
		r := newRig(t, 256*mib)
		s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
		n := 1
		if at == beforeSearch {
			n = 2 // the first search sent it to the pool
		}
		crash(s, at, n, nil)
		_, err := async(t, r, s, 5*mib)
		isPanic(t, err)
		held := r.stats(s).HeldBytes
		assert.Positive(t, held)
		require.NoError(t, must(t, other, 5*mib).Free())
		goesOn(t, r, s, other)
	}
}

// A panic in the turn of a denial fails the request all the same.
func TestPanicInTheTurnOfADenialFailsItsRequest(t *testing.T) {
	r := newRig(t, 8*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	b := must(t, other, 6*mib)
	crash(s, beforeSearch, 2, nil)
	_, err := async(t, r, s, 5*mib)
	isPanic(t, err)
	s.setHook(nil)
	_, err = s.Alloc(5 * mib)
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	require.NoError(t, b.Free())
	_, err = r.pool.Trim(context.Background(), 0)
	require.NoError(t, err)
	goesOn(t, r, s, other)
}

// Pages that were in transit to the pool go back into the heap, and the reclaim request is
// answered, when its turn panics.
func TestPanicBeforeAReturnKeepsThePages(t *testing.T) {
	r := newRig(t, 256*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	require.NoError(t, must(t, s, 32*mib).Free())
	crash(s, beforeReturn, 1, nil)
	_, err := r.pool.Trim(context.Background(), 0)
	require.NoError(t, err)
	assert.Equal(t, 32*mib, r.stats(s).CachedBytes)
	r.balanced(s)
	goesOn(t, r, s, other)
	n, err := r.pool.Trim(context.Background(), 0)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, n, 32*mib, "the next time they go")
}

// A turn that a caller entered and that panics while it returns the excess over the budget is no
// loss to the caller: the request goes by message, and the block of the first try goes back.
func TestPanicInAnEnteredTurnIsNoAnswer(t *testing.T) {
	r := newRig(t, 256*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	require.NoError(t, must(t, s, 32*mib).Free())
	leave := r.occupy(s)
	s.turn.state.core.SetSettings(core.Settings{Budget: core.Budget{CacheBytes: 4 * mib}})
	leave()
	crash(s, beforeReturn, 1, nil)
	b := must(t, s, 2*mib)
	assert.Equal(t, uint64(1), r.stats(s).LiveCount)
	require.NoError(t, b.Free())
	goesOn(t, r, s, other)
}

// The panic of an order's turn is the order's error: Close of a stream ends, and its memory comes
// back with the next tick.
func TestPanicInCloseEndsClose(t *testing.T) {
	r := newRig(t, 256*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 32*mib).Free())
	crash(s, beforeReturn, 1, nil)
	isPanic(t, s.Close())
	assert.Equal(t, 32*mib, r.books().LentBytes)
	r.tick(s)
	r.until(func() bool { return r.books().LentBytes == 0 })
	<-s.ref.Done()
	assert.True(t, control(s).Gone())
}

// Books that do not balance after a panic quarantine the stream: its requests fail with
// ErrQuarantined, its memory is not touched, other streams continue.
func TestBrokenBooksQuarantineTheStream(t *testing.T) {
	recoveredtest.Expect(t, "vram-stream-1: runtime error: invalid memory address") // where the core is taken away
	spoils := map[string]func(s *Stream){
		"a block was taken and has no slot": func(s *Stream) {
			slot, _ := s.turn.state.core.Alloc(3*mib, 0)
			slot.Block = -1
		},
		"a slot has the wrong length": func(s *Stream) {
			slot, _ := s.turn.state.core.Alloc(3*mib, 0)
			slot.Units++
		},
		"putting back panics": func(s *Stream) {
			s.turn.state.inTransit.runs = []core.Run{{First: 0, Pages: 1}}
			s.turn.state.core = nil
		},
	}
	for name, spoil := range spoils {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 256*mib)
			s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
			require.NoError(t, must(t, s, 32*mib).Free())
			small := must(t, s, kib) // the magazine has more of them
			held, books := r.stats(s).HeldBytes, s.turn.state.core
			crash(s, beforeSearch, 1, func() { spoil(s) })

			leave := r.occupy(s)
			first := s.AllocAsync(context.Background(), Request{Bytes: 2 * mib})
			second := s.AllocAsync(context.Background(), Request{Bytes: 2 * mib})
			leave()
			_, err := first.Await(context.Background())
			isPanic(t, err)
			_, err = second.Await(context.Background())
			require.ErrorIs(t, err, ErrQuarantined)
			<-s.ref.Done()
			s.turn.state.core = books // for the end of the test
			_, err = s.Alloc(2 * mib)
			require.ErrorIs(t, err, ErrQuarantined)
			_, err = s.AllocAsync(context.Background(), Request{Bytes: 2 * mib}).Await(context.Background())
			require.ErrorIs(t, err, ErrQuarantined)
			if name != "putting back panics" { // there is no core to end the magazines
				_, err = s.Alloc(kib)
				require.ErrorIs(t, err, ErrQuarantined, "no magazine serves it")
			}
			assert.NoError(t, small.Free())
			assert.ErrorIs(t, small.Free(), ErrBadFree)

			require.NoError(t, must(t, other, 64*mib).Free())
			_, err = r.pool.Trim(context.Background(), 0) // asks the one that has ended, too
			require.NoError(t, err)
			assert.Equal(t, held, r.books().LentBytes)
			require.ErrorIs(t, s.Close(), ErrQuarantined)
			assert.False(t, control(s).Gone())
		})
	}
}

// A call that has a stream return memory is answered also if its turn left no effects.
func TestAnOrderIsAnsweredWithoutEffects(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, s.Close())
	<-s.ref.Done() // the turn's state is ours now
	o := &callback{awaitsReturns: true}
	effect.Push(&s.turn.state.effects().replies, o)
	s.turn.ending.stopped(ErrQuarantined)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the answer is there, or none comes
	_, err := o.promise.Future().Await(ctx)
	require.ErrorIs(t, err, ErrQuarantined)
}

// A call that has a stream return memory learns of no end by Close: its answer comes from the effects, which are performed.
func TestAnOrderIsAnsweredByTheEffectsOfAClose(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, s.Close())
	<-s.ref.Done() // the turn's state is ours now
	require.ErrorIs(t, s.cuda.closed(), ErrClosed)
	for _, cause := range []error{ErrClosed, s.cuda.closed()} {
		o := &callback{awaitsReturns: true}
		effect.Push(&s.turn.state.effects().replies, o)
		s.turn.ending.stopped(cause)
		assert.False(t, o.promise.Future().Completed())
		require.True(t, s.turn.state.out.reply(nil))
		assert.True(t, o.promise.Future().Completed())
	}
}

// lazyHost is a host that starts nothing until run, and waits for nothing: it lists the functions that it should run. Any goroutine may have it
// run one. After run it is the Go scheduler.
type lazyHost struct {
	mu      sync.Mutex
	due     []func()
	started bool
}

func (e *lazyHost) Go(_ string, f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		go f()
		return
	}
	e.due = append(e.due, f)
}

// run runs the functions that are listed; later ones are started at once.
func (e *lazyHost) run() {
	e.mu.Lock()
	due := e.due
	e.due, e.started = nil, true
	e.mu.Unlock()
	for _, f := range due {
		f()
	}
}

func (e *lazyHost) Wait(closed ...<-chan struct{}) {
	e.mu.Lock()
	started := e.started
	e.mu.Unlock()
	if !started {
		return
	}
	cases := make([]reflect.SelectCase, len(closed))
	for i, c := range closed {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}
	}
	reflect.Select(cases)
}

func (*lazyHost) Reach(string) {}

func (*lazyHost) Behavior(_ string, b actors.Behavior) actors.Behavior { return b }

// The pool's question that a stream owes an answer to is answered for it when it ends.
func TestWhatIsOwedIsAnsweredAtTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, s.Close())
	<-s.ref.Done() // the turn's state is ours now
	var host lazyHost
	s.host = &host
	defer func() { s.host = nil }()
	s.turn.reclaims.due = &reclaim{stream: &s.wiring}
	s.turn.ending.stopped(ErrQuarantined)
	require.Len(t, host.due, 1, "nobody else answers it")
	host.due[0]()
}

// A request that waits in the pool and whose turn panics waits there no longer: it holds up no
// other request.
func TestAPanicWithdrawsARequestThatWaits(t *testing.T) {
	r := newRig(t, 8*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	held, freed := must(t, other, 6*mib), must(t, other, 2*mib)
	f := s.AllocAsync(context.Background(), Request{Bytes: 4 * mib, Wait: true})
	r.until(func() bool { return r.books().Waits.Waiting == 1 })
	leave := r.occupy(s)
	s.turn.state.hook = crashing(beforeSearch, 1, nil)
	leave()
	require.NoError(t, freed.Free()) // it gets an offer, and would wait on
	_, err := f.Await(context.Background())
	isPanic(t, err)
	r.until(func() bool { return r.books().Waits.Waiting == 0 })
	assert.Zero(t, r.pool.Demand())
	require.NoError(t, held.Free())
	goesOn(t, r, s, other)
}
