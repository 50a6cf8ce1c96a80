package streams

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/streams/core"
)

// A turn that panics after it has answered a batch takes nothing back: the buffers are the caller's.
func TestAPanicAfterTheAnswerOfABatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{CacheBytes: 4 * mib})
	sizes := mixed(36)
	require.NoError(t, must(t, s, 128*mib).Free()) // more than the budget: to be shed behind the answer
	leave := r.occupy(s)
	f := s.AllocBatchAsync(context.Background(), sizes)
	panicked := false
	s.hook = func(p point) {
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

// A batch whose turn panicked on another goroutine leaves the slice alone once its caller has it back, who may
// use it for the next.
func TestAFailedBatchLeavesTheSliceAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 128*mib).Free())
	var panics atomic.Bool
	s.hook = func(p point) {
		if p == beforeAnswer && panics.CompareAndSwap(true, false) {
			panic(recoveredtest.Planted("planted"))
		}
	}
	sizes := mixed(24)
	buffers := make([]Buffer, len(sizes))
	for range 200 {
		panics.Store(true)
		failed := &batching{dst: buffers, bytes: sizes}
		s.ref.Tell(failed)
		_, err := failed.promise.Future().Await(context.Background())
		require.ErrorContains(t, err, "planted")
		require.NoError(t, s.AllocBatch(buffers, sizes))
		r.stats(s) // behind the turn that panicked
		disjoint(t, buffers, sizes)
		require.NoError(t, s.FreeBatch(buffers))
	}
	r.balanced(s)
}
