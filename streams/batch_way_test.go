package streams

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// Each buffer of a batch counts for the level that served it.
func TestWhoServedABatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{})
	sizes := []int64{4 * kib, 3 * mib, 4 * kib, 5 * mib}
	buffers := make([]Buffer, len(sizes))
	levels := func(magazine, ranges, pool uint64) {
		t.Helper()
		n := r.stats(s)
		assert.Equal(t, []uint64{magazine, ranges, pool}, []uint64{n.MagazineHits, n.RangeHits, n.PoolHits})
	}
	require.NoError(t, s.AllocBatch(buffers, sizes))
	levels(0, 0, 4)
	require.NoError(t, s.FreeBatch(buffers))
	require.NoError(t, s.AllocBatch(buffers, sizes), "in the caller's turn")
	levels(2, 2, 4)
	require.NoError(t, s.FreeBatch(buffers))
	leave := r.occupy(s)
	f := s.AllocBatchAsync(context.Background(), sizes) // by message
	leave()
	b, err := f.Await(context.Background())
	require.NoError(t, err)
	levels(4, 4, 4)
	require.NoError(t, b.Free())
	sizes = append(sizes, 60*mib)
	buffers = make([]Buffer, len(sizes))
	require.NoError(t, s.AllocBatch(buffers, sizes), "one with the pool's help")
	levels(6, 6, 5)
	require.NoError(t, s.FreeBatch(buffers))
}

// The pool is asked for all missing memory of a batch at once, also when two batches wait.
func TestABatchAsksThePoolOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1024*mib)
	s := r.stream(core.Budget{})
	long, short := []int64{60 * mib, 50 * mib, 40 * mib, 30 * mib}, []int64{2 * mib, 63 * mib, 3 * mib}
	entered, release := r.holdUp("cuMemCreate")
	first := s.AllocBatchAsync(context.Background(), long)
	<-entered
	second := s.AllocBatchAsync(context.Background(), short)
	require.Equal(t, 2, r.stats(s).Waiting)
	release()
	a, err := first.Await(context.Background())
	require.NoError(t, err)
	b, err := second.Await(context.Background())
	require.NoError(t, err)
	r.stats(s) // after the last turn
	leave := r.occupy(s)
	var next claims.Claim
	assert.EqualValues(t, 3, s.turn.state.claims.Hold(&next, claims.Parked), "each has asked once")
	s.turn.state.claims.Take(&next)
	leave()
	require.NoError(t, a.Free())
	require.NoError(t, b.Free())
}

// A batch in the caller's turn returns the excess over the budget, as every other turn.
func TestABatchSheds(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 128*mib).Free())
	leave := r.occupy(s)
	s.turn.state.core.SetBudget(core.Budget{CacheBytes: 4 * mib}) // which returns nothing by itself
	leave()
	buffers := make([]Buffer, 2)
	require.NoError(t, s.AllocBatch(buffers, []int64{3 * mib, mib}))
	assert.LessOrEqual(t, r.stats(s).CachedBytes, 6*mib)
	require.NoError(t, s.FreeBatch(buffers))
}

// The longest are placed first: the short ones fit the rest of their pages.
func TestTheLongestArePlacedFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 8*mib).Free())
	a, between, b := must(t, s, 4*mib), must(t, s, mib), must(t, s, 3*mib)
	require.NoError(t, a.Free())
	require.NoError(t, b.Free())
	buffers := make([]Buffer, 3)
	require.NoError(t, s.AllocBatch(buffers, []int64{mib, 3 * mib, 3 * mib}), "into free ranges of four and three")
	require.NoError(t, s.FreeBatch(append(buffers, between)))
}

// Old buffers in the slice are not part of the batch, and after an error the slice is empty.
func TestTheSliceIsWrittenAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	used := func() []Buffer {
		old := must(t, s, 4*kib)
		require.NoError(t, old.Free())
		return []Buffer{old, old, old}
	}
	sizes := []int64{4 * kib, 3 * mib, 5 * mib}
	buffers := used()
	require.NoError(t, s.AllocBatch(buffers, sizes))
	disjoint(t, buffers, sizes)
	require.NoError(t, s.FreeBatch(buffers))
	for _, wrong := range [][]int64{{1, -1, 1}, {1, 65 * mib, 1}, {1, 1}, {40 * mib, 23 * mib, 3 * mib / 2}} {
		buffers = used()
		require.Error(t, s.AllocBatch(buffers, wrong))
		assert.Equal(t, make([]Buffer, 3), buffers, "%v", wrong)
	}
	closed := r.stream(core.Budget{})
	require.NoError(t, closed.Close())
	for _, none := range []*Stream{nil, new(Stream), closed} {
		for _, some := range [][]int64{sizes, sizes[1:]} {
			buffers = used()
			require.Error(t, none.AllocBatch(buffers, some))
			assert.Equal(t, make([]Buffer, 3), buffers)
		}
	}
}

// The sizes of a future are read before AllocBatchAsync returns.
func TestTheSizesAreNotKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	sizes := []int64{4 * kib, 3 * mib}
	leave := r.occupy(s)
	f := s.AllocBatchAsync(context.Background(), sizes)
	sizes[0], sizes[1] = 1, 2
	leave()
	b, err := f.Await(context.Background())
	require.NoError(t, err)
	disjoint(t, b.Buffers(), []int64{4 * kib, 3 * mib})
	require.NoError(t, b.Free())
}

// A batch that meets a close frees its slots from magazines.
func TestABatchThatMeetsAClose(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 4*kib).Free())
	sizes := []int64{4 * kib, 3 * mib}
	leave := r.occupy(s)
	var closing sync.WaitGroup
	closing.Go(func() { assert.NoError(t, s.Close()) })
	r.until(s.cuda.closing.Load)
	buffers := make([]Buffer, 2)
	require.ErrorIs(t, s.AllocBatch(buffers, sizes), ErrClosed)
	assert.Equal(t, make([]Buffer, 2), buffers)
	_, err := s.AllocBatchAsync(context.Background(), sizes).Await(context.Background())
	require.ErrorIs(t, err, ErrClosed)
	leave()
	closing.Wait()
	<-s.ref.Done() // nothing lives
	assert.Zero(t, control(s).LastStats().LiveCount)
}

// A closed stream serves no batch from free memory around a live buffer.
func TestAClosedStreamServesNoBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	b := must(t, s, mib)
	require.NoError(t, s.Close())
	require.Positive(t, r.stats(s).CachedBytes)
	buffers := make([]Buffer, 1)
	require.ErrorIs(t, s.AllocBatch(buffers, []int64{70 * kib}), ErrClosed)
	require.NoError(t, b.Free())
}

// A batch that is cancelled before its stream receives it asks the pool for nothing; one that is
// cancelled when it is complete puts its slots back, uncounted.
func TestABatchThatIsCancelledInItsTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	leave := r.occupy(s)
	f := s.AllocBatchAsync(context.Background(), mixed(12))
	require.True(t, f.Cancel())
	leave()
	assert.Zero(t, r.stats(s).HeldBytes)
	assert.Zero(t, r.faults.Calls("cuMemCreate"))

	require.NoError(t, must(t, s, 32*mib).Free())
	leave = r.occupy(s)
	f = s.AllocBatchAsync(context.Background(), mixed(12))
	s.turn.state.hook = func(p point) {
		if p == beforeAnswer {
			assert.True(t, f.Cancel())
		}
	}
	leave()
	_, err := f.Await(context.Background())
	require.ErrorIs(t, err, futures.ErrCanceled)
	n := r.stats(s)
	assert.Zero(t, n.LiveCount)
	assert.Equal(t, uint64(1), n.AllocCount)
	r.balanced(s)
}

// Memory that is freed while the pool refuses serves the batch after all.
func TestMemoryThatComesHomeServesARefusedBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	held := must(t, s, 60*mib)
	r.stats(s) // after the turn that served it
	searches := 0
	s.setHook(func(p point) {
		if p == beforeSearch {
			if searches++; searches == 2 { // the pool has refused
				assert.NoError(t, held.Free())
			}
		}
	})
	buffers := make([]Buffer, 2)
	require.NoError(t, s.AllocBatch(buffers, []int64{40 * mib, mib}))
	require.NoError(t, s.FreeBatch(buffers))
	r.balanced(s)
}

// The watch of a batch over its context ends with the answer, whether a success or an error.
func TestTheAnswerOfABatchEndsTheWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	ctx := &watched{Context: t.Context(), ended: make(chan struct{}, 1), done: make(chan struct{})}
	b, err := s.AllocBatchAsync(ctx, []int64{5 * mib, mib}).Await(t.Context())
	require.NoError(t, err)
	<-ctx.ended
	_, err = s.AllocBatchAsync(ctx, []int64{5 * mib, mib}).Await(t.Context())
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	<-ctx.ended
	require.NoError(t, b.Free())
	assert.Zero(t, ctx.watches.Load())
}

// Frees of buffers whose device is closed return ErrClosed.
func TestAFreeOfABatchAfterTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	small, large := make([]Buffer, 2), make([]Buffer, 2)
	require.NoError(t, s.AllocBatch(small, []int64{4 * kib, 4 * kib}))
	require.NoError(t, s.AllocBatch(large, []int64{3 * mib, 5 * mib}))
	require.NoError(t, s.Close())
	control(s).End()
	require.ErrorIs(t, s.FreeBatch(small), ErrClosed)
	require.ErrorIs(t, s.FreeBatch(large), ErrClosed)
}

// A batch lacks the bytes of the buffers that it has not got yet, however often it searches.
func TestABatchLacksWhatItHasNotGot(t *testing.T) {
	t.Parallel()
	s := newRig(t, 64*mib).stream(core.Budget{})
	b := s.batching(make([]Buffer, 3), []int64{kib, 2 * kib, 4 * kib})
	for _, want := range []int64{7 * kib, 6 * kib, 4 * kib, 0} {
		for range 2 {
			b.sum()
			assert.Equal(t, want, b.missingBytes())
			assert.Equal(t, 7*kib, b.requestedBytes())
			assert.Equal(t, 7*kib, b.blockBytes())
		}
		for i := range b.dst {
			if b.dst[i].slot == nil {
				b.dst[i] = must(t, s, b.bytes[i])
				break
			}
		}
	}
	require.NoError(t, s.FreeBatch(b.dst))
}

// A batch that is canceled before its stream receives it returns the buffers that its caller has found.
func TestABatchThatIsCanceledReturnsWhatItHas(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 4*kib).Free())
	leave := r.occupy(s)
	f := s.AllocBatchAsync(context.Background(), []int64{4 * kib, 3 * mib})
	require.True(t, f.Cancel())
	leave()
	assert.Zero(t, r.stats(s).LiveBytes)
	require.NoError(t, s.Trim(t.Context()))
	assert.Zero(t, r.stats(s).HeldBytes, "nothing is in use")
}
