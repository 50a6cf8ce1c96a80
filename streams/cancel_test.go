package streams

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// sender sends a request and returns the function that cancels it.
type sender func(s *Stream, bytes int64) (f futures.Future[Buffer], cancel func())

// cancellations runs a test with the two ways to end a request.
func cancellations(t *testing.T, test func(t *testing.T, send sender)) {
	t.Helper()
	t.Run("context", func(t *testing.T) {
		test(t, func(s *Stream, bytes int64) (futures.Future[Buffer], func()) {
			ctx, cancel := context.WithCancel(context.Background())
			f := s.AllocAsync(ctx, Request{Bytes: bytes})
			return f, func() {
				cancel()
				<-f.Done() // the context is heard of on a goroutine of its own
			}
		})
	})
	t.Run("future", func(t *testing.T) {
		test(t, func(s *Stream, bytes int64) (futures.Future[Buffer], func()) {
			f := s.AllocAsync(context.Background(), Request{Bytes: bytes})
			return f, func() { f.Cancel() }
		})
	})
}

// A request that is cancelled before its stream receives it takes nothing.
func TestCancelBeforeItIsReceived(t *testing.T) {
	cancellations(t, func(t *testing.T, send sender) {
		t.Helper()
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		require.NoError(t, must(t, s, 8*mib).Free())
		leave := r.occupy(s)
		f, cancel := send(s, mib)
		cancel()
		leave()
		_, err := f.Await(context.Background())
		require.ErrorIs(t, err, context.Canceled)
		n := r.stats(s)
		assert.Equal(t, uint64(1), n.AllocCount)
		assert.Zero(t, n.LiveCount)
		r.balanced(s)
	})
}

// Memory that arrives for a request that was cancelled while it waited for the pool stays in the
// cache: the next request makes no driver call.
func TestCancelWhileItWaitsForThePool(t *testing.T) {
	cancellations(t, func(t *testing.T, send sender) {
		t.Helper()
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		entered, release := r.holdUp("cuMemCreate")
		f, cancel := send(s, 8*mib)
		<-entered
		require.Equal(t, 1, r.stats(s).Waiting)
		cancel()
		_, err := f.Await(context.Background())
		require.ErrorIs(t, err, context.Canceled)
		next := s.AllocAsync(context.Background(), Request{Bytes: mib}) // answered after the first one's memory
		release()
		b, err := next.Await(context.Background())
		require.NoError(t, err)
		require.NoError(t, b.Free())

		r.balanced(s) // nothing is on its way any more
		calls := r.faults.Calls("cuMemCreate")
		require.NoError(t, must(t, s, 8*mib).Free())
		assert.Equal(t, calls, r.faults.Calls("cuMemCreate"), "what came too late is there")
		n := r.stats(s)
		assert.Zero(t, n.LiveBytes)
		assert.Zero(t, n.Waiting)
		assert.Equal(t, uint64(2), n.AllocCount)
		r.balanced(s)
		assert.Zero(t, s.turn.state.core.LiveBytes(), "nothing is waited for any more")
	})
}

// A request that is cancelled and then denied is answered once.
func TestCancelBeforeADenial(t *testing.T) {
	cancellations(t, func(t *testing.T, send sender) {
		t.Helper()
		r := newRig(t, 8*mib)
		s := r.stream(core.Budget{})
		b := must(t, s, 6*mib)
		leave := r.occupy(s)
		f, cancel := send(s, 6*mib)
		leave()
		cancel()
		_, err := f.Await(context.Background())
		require.Error(t, err)
		if !errors.Is(err, context.Canceled) { // the denial came first
			require.ErrorIs(t, err, pool.ErrOutOfMemory)
		}
		require.NoError(t, b.Free())
		require.NoError(t, must(t, s, 6*mib).Free())
		assert.Equal(t, uint64(2), r.stats(s).AllocCount)
		r.balanced(s)
	})
}

// Cancelling races completing: each request gets a buffer or its cancellation, and nothing is lost
// either way.
func TestCancelRacesCompletion(t *testing.T) {
	cancellations(t, func(t *testing.T, send sender) {
		t.Helper()
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		require.NoError(t, must(t, s, 16*mib).Free())
		served := uint64(1)
		for range 300 {
			leave := r.occupy(s)
			f, cancel := send(s, mib)
			done := make(chan struct{})
			go func() {
				defer close(done)
				cancel()
			}()
			leave()
			b, err := f.Await(context.Background())
			<-done
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				continue
			}
			served++
			require.NoError(t, b.Free())
		}
		n := r.stats(s)
		assert.Equal(t, served, n.AllocCount)
		assert.Equal(t, served, n.FreeCount)
		assert.Zero(t, n.LiveBytes)
		r.balanced(s)
	})
}

// A request that is cancelled when its block is taken already puts the block back, uncounted.
func TestCancelWhenTheBlockIsTaken(t *testing.T) {
	for _, bytes := range []int64{kib, 3 * mib} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		require.NoError(t, must(t, s, 16*mib).Free())
		leave := r.occupy(s)
		f := s.AllocAsync(context.Background(), Request{Bytes: bytes})
		s.turn.state.hook = func(p point) {
			if p == beforeAnswer {
				require.True(t, f.Cancel())
			}
		}
		leave()
		_, err := f.Await(context.Background())
		require.ErrorIs(t, err, futures.ErrCanceled)
		n := r.stats(s)
		assert.Equal(t, uint64(1), n.AllocCount)
		assert.Equal(t, uint64(1), n.FreeCount)
		assert.Zero(t, n.LiveBytes)
		assert.Zero(t, n.LiveCount)
		r.balanced(s)
	}
}

// A request whose context has ended already is refused, and counts as no allocation.
func TestAnEndedContextIsRefused(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.AllocAsync(ctx, Request{Bytes: mib}).Await(context.Background())
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, r.stats(s).AllocCount)
}

// watched is a context that counts the watches over it.
type watched struct {
	context.Context
	watches atomic.Int64
	ended   chan struct{}
	done    chan struct{}
}

// Done is another channel than the parent's: else the parent is watched itself.
func (w *watched) Done() <-chan struct{} { return w.done }

// AfterFunc is called by the package context if a context has it.
func (w *watched) AfterFunc(func()) (stop func() bool) {
	w.watches.Add(1)
	return func() bool {
		w.watches.Add(-1)
		w.ended <- struct{}{}
		return true
	}
}

// The request's watch over its context ends with every answer: a context that lives long does not
// collect requests.
func TestAnAnswerEndsTheWatchOverTheContext(t *testing.T) {
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	parent := t.Context()
	ctx := &watched{Context: parent, ended: make(chan struct{}, 1), done: make(chan struct{})}

	b, err := s.AllocAsync(ctx, Request{Bytes: 6 * mib}).Await(parent) // a buffer, by way of the pool
	require.NoError(t, err)
	<-ctx.ended
	_, err = s.AllocAsync(ctx, Request{Bytes: 6 * mib}).Await(parent) // a refusal
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	<-ctx.ended
	leave := r.occupy(s)
	f := s.AllocAsync(ctx, Request{Bytes: mib})
	require.Equal(t, int64(1), ctx.watches.Load())
	require.True(t, f.Cancel()) // a cancellation
	<-ctx.ended
	leave()
	require.NoError(t, b.Free())
	assert.Zero(t, ctx.watches.Load())
}

// hostile is a context that panics when a watch over it ends.
type hostile struct{ context.Context }

func (hostile) Done() <-chan struct{} { return make(chan struct{}) }

func (hostile) AfterFunc(func()) (stop func() bool) {
	return func() bool { panic(recoveredtest.Planted("the context")) }
}

// A cancelled request is refunded and waits no longer, also if its context panics.
func TestACancelledRequestOfAContextThatPanics(t *testing.T) {
	t.Parallel()
	for _, batch := range []bool{false, true} {
		r, s, other := pair(t, 16*mib)
		owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 64 * mib})
		r.pool.AddTenants(owner)
		held := must(t, other, 12*mib)
		var cancel func() bool
		if batch {
			cancel = s.AllocBatchForAsync(hostile{t.Context()}, BatchRequest{Bytes: []int64{6 * mib}, Wait: true, Tenant: owner}).Cancel
		} else {
			cancel = s.AllocAsync(hostile{t.Context()}, Request{Bytes: 6 * mib, Wait: true, Tenant: owner}).Cancel
		}
		r.until(func() bool { return r.books().Waits.Waiting == 1 })
		assert.Equal(t, 6*mib, owner.Stats().ChargedBytes)
		require.True(t, cancel())
		assert.Zero(t, owner.Stats().ChargedBytes)
		r.until(func() bool { return r.books().Waits.Waiting == 0 })
		require.NoError(t, held.Free())
	}
}

// Memory that arrives for a cancelled request serves one that waits, on another stream, without a tick.
func TestMemoryOfACancelledRequestServesOneThatWaits(t *testing.T) {
	t.Parallel()
	r, s, other := pair(t, 16*mib)
	entered, release := r.holdUp("cuMemCreate")
	cancelled := s.AllocAsync(t.Context(), Request{Bytes: 8 * mib})
	<-entered
	waits := other.AllocAsync(t.Context(), Request{Bytes: 14 * mib, Wait: true})
	require.True(t, cancelled.Cancel())
	release()
	r.until(waits.Completed)
	b, err := waits.Await(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Free())
}
