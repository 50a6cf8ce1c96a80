package streams

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// A turn that panics after it has answered a batch takes nothing back: the buffers are the
// caller's.
func TestAPanicAfterTheAnswerOfABatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{CacheBytes: 4 * mib})
	sizes := mixed(36)
	require.NoError(t, must(t, s, 128*mib).Free()) // more than the budget: to be returned after the answer
	leave := r.occupy(s)
	f := s.AllocBatchAsync(context.Background(), sizes)
	panicked := false
	s.turn.state.hook = func(p point) {
		if p == beforeReturn && !panicked {
			assert.True(t, f.Completed())
			panicked = true
			panic(recoveredtest.Planted("planted"))
		}
	}
	leave()
	b, err := f.Await(context.Background())
	require.NoError(t, err)
	n := r.stats(s)
	assert.True(t, panicked)
	disjoint(t, b.Buffers(), sizes)
	assert.Equal(t, uint64(len(sizes)), n.LiveCount)
	require.NoError(t, b.Free())
	r.balanced(s)
}

// Nor does one that panics in the middle of the answer, when the caller may have the buffers
// already.
func TestAPanicInTheAnswerOfABatch(t *testing.T) {
	t.Parallel()
	for _, charged := range []bool{false, true} {
		r := newRig(t, 512*mib)
		s := r.stream(core.Budget{})
		sizes := mixed(36)
		owner := pool.NewTenant("owner", 1, pool.Quota{})
		b := s.batching(make([]Buffer, len(sizes)), sizes)
		b.unwatch = func() { panic(recoveredtest.Planted("planted")) }
		if charged {
			require.NoError(t, b.charge(owner, sumOfBlocks(sizes)))
		}
		s.ref.Tell(&b.claim)
		got, err := b.promise.Future().Await(context.Background())
		require.NoError(t, err)
		n := r.stats(s) // after the turn that panicked
		disjoint(t, got.Buffers(), sizes)
		assert.Equal(t, uint64(len(sizes)), n.LiveCount)
		if charged {
			assert.Equal(t, sumOfBlocks(sizes), owner.Stats().HeldBytes)
			assert.Equal(t, sumOfBlocks(sizes), owner.Stats().ChargedBytes)
		}
		require.NoError(t, got.Free())
		assert.Zero(t, owner.Stats().ChargedBytes)
		r.balanced(s)
	}
}

// A batch whose turn panicked on another goroutine does not touch the slice after its caller has it
// back.
func TestAFailedBatchLeavesTheSliceAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 128*mib).Free())
	var panics atomic.Bool
	s.setHook(func(p point) {
		if p == beforeAnswer && panics.CompareAndSwap(true, false) {
			panic(recoveredtest.Planted("planted"))
		}
	})
	sizes := mixed(24)
	buffers := make([]Buffer, len(sizes))
	for range 200 {
		panics.Store(true)
		failed := s.batching(buffers, sizes)
		s.ref.Tell(&failed.claim)
		_, err := failed.promise.Future().Await(context.Background())
		require.ErrorContains(t, err, "planted")
		require.NoError(t, s.AllocBatch(buffers, sizes))
		r.stats(s) // after the turn that panicked
		disjoint(t, buffers, sizes)
		require.NoError(t, s.FreeBatch(buffers))
	}
	r.balanced(s)
}

// ended is a context that is over or not, and calls AfterFunc's function on the goroutine that
// registers it.
type ended struct {
	context.Context
	cause error
}

func (e *ended) Err() error            { return e.cause }
func (e *ended) Done() <-chan struct{} { return make(chan struct{}) }
func (e *ended) AfterFunc(f func()) (stop func() bool) {
	if e.cause != nil {
		f()
	}
	return func() bool { return false }
}

// A batch whose turn has counted it, and panics then, is not counted twice: neither if it continues
// by message, nor if it was cancelled and its blocks are put back.
func TestAPanicBehindACountedBatch(t *testing.T) {
	t.Parallel()
	for _, canceled := range []bool{false, true} {
		r := newRig(t, 512*mib)
		s := r.stream(core.Budget{})
		require.NoError(t, must(t, s, 128*mib).Free())
		r.stats(s)
		leave := r.occupy(s)
		s.turn.state.core.SetSettings(core.Settings{Budget: core.Budget{CacheBytes: 4 * mib}}) // to be returned after the batch
		leave()
		before := r.stats(s)
		ctx := &ended{Context: context.Background()}
		crash(s, beforeReturn, 1, func() {
			if canceled {
				ctx.cause = context.Canceled
			}
		})
		sizes := mixed(36)
		b, err := s.AllocBatchAsync(ctx, sizes).Await(context.Background())
		n := r.stats(s)
		if canceled {
			require.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, before.AllocCount, n.AllocCount)
			assert.Equal(t, before.RangeHits, n.RangeHits)
		} else {
			require.NoError(t, err)
			assert.Equal(t, before.AllocCount+uint64(len(sizes)), n.AllocCount)
			assert.Equal(t, before.RangeHits+uint64(len(sizes)), n.RangeHits)
			require.NoError(t, b.Free())
		}
		s.setHook(nil)
		r.balanced(s)
	}
}
