package streams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
)

// counts are the figures of a stream that a batch without an answer must not change.
func counts(n Stats) []any {
	return []any{n.AllocCount, n.FreeCount, n.LiveCount, n.LiveBytes, n.MagazineHits, n.RangeHits, n.PoolHits}
}

// cached is a stream whose magazine of 4 KiB has free slots, and whose ranges hold 3 MiB and no more.
func (r *rig) cached() *Stream {
	r.t.Helper()
	s := r.stream(core.Budget{})
	b, err := s.AllocBatchFor(context.Background(), BatchRequest{Bytes: []int64{4 * kib, 4 * kib, 3 * mib}})
	require.NoError(r.t, err)
	require.NoError(r.t, b.Free())
	return s
}

var partlyThere = []int64{4 * kib, 3 * mib, 60 * mib, 4 * kib}

// A batch that waits for the pool has blocks of magazines and of ranges. Nobody has them: they are neither
// live nor allocations, whether the batch gets all or is cancelled.
func TestPartsOfABatchAreNobodys(t *testing.T) {
	t.Parallel()
	for _, canceled := range []bool{true, false} {
		r := newRig(t, 512*mib)
		s := r.cached()
		before := r.stats(s)
		entered, release := r.holdUp("cuMemCreate")
		f := s.AllocBatchAsync(context.Background(), partlyThere)
		<-entered
		assert.Equal(t, counts(before), counts(r.stats(s)), "while it waits")
		if !canceled {
			release()
			b, err := f.Await(context.Background())
			require.NoError(t, err)
			n := r.stats(s)
			assert.Equal(t, before.AllocCount+4, n.AllocCount)
			assert.Equal(t, before.MagazineHits+2, n.MagazineHits)
			assert.Equal(t, before.RangeHits+1, n.RangeHits)
			require.NoError(t, b.Free())
			continue
		}
		f.Cancel()
		assert.Equal(t, counts(before), counts(r.stats(s)), "cancelled, and the pool has not answered")
		release()
		r.until(func() bool { return r.stats(s).Waiting == 0 })
		assert.Equal(t, counts(before), counts(r.stats(s)), "put back")
		r.balanced(s)
	}
}

// The same of a batch whose message has not reached the stream.
func TestPartsOfABatchOnItsWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.cached()
	before := r.stats(s)
	leave := r.occupy(s)
	var n Stats
	s.post(func() { n = s.turn.state.saveStats() })
	f := s.AllocBatchAsync(context.Background(), partlyThere)
	f.Cancel()
	leave()
	assert.Equal(t, counts(before), counts(r.stats(s)))
	assert.Equal(t, counts(before), counts(n), "ahead of the batch")
	r.balanced(s)
}

// The same of a batch whose turn panics, before or after it has searched.
func TestAPanicCountsNoParts(t *testing.T) {
	t.Parallel()
	for _, at := range []point{beforeSearch, beforeAnswer} {
		r := newRig(t, 512*mib)
		s := r.cached()
		before := r.stats(s)
		leave := r.occupy(s)
		f := s.AllocBatchAsync(context.Background(), []int64{4 * kib, 3 * mib, 4 * kib})
		panicked := false
		s.turn.state.hook = func(p point) {
			if p == at && !panicked {
				panicked = true
				panic(recoveredtest.Planted("planted"))
			}
		}
		leave()
		_, err := f.Await(context.Background())
		require.ErrorContains(t, err, "planted", "%v", at)
		n := r.stats(s)
		s.setHook(nil)
		assert.Equal(t, counts(before), counts(n), "%v", at)
		r.balanced(s)
	}
}

// The same of a batch that meets a stream which closes.
func TestABatchOnAClosingStreamCountsNoParts(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.cached()
	keep := must(t, s, 4*kib)
	before := r.stats(s)
	leave := r.occupy(s)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	r.until(s.cuda.closing.Load) // and the turn has not closed the magazines
	refused := make(chan error)
	go func() { refused <- s.AllocBatch(make([]Buffer, 4), partlyThere) }()
	select {
	case err := <-refused:
		require.ErrorIs(t, err, ErrClosed)
		leave()
	default:
		leave()
		require.ErrorIs(t, <-refused, ErrClosed)
	}
	require.NoError(t, <-closed)
	n := r.stats(s)
	assert.Equal(t, counts(before)[:4], counts(n)[:4])
	require.NoError(t, keep.Free())
}

// A reading between the moment at which a caller takes slots and the one at which it books them has counted
// allocations. No count falls, and the batch counts them as freed when it puts them back.
func TestAReadingThatSawParts(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		r := newRig(t, 512*mib)
		s := r.cached()
		before := r.stats(s)
		dst := make([]Buffer, len(partlyThere))
		reading := s.parts.Reading()
		require.False(t, s.takeBatch(dst, partlyThere))
		seen := r.stats(s)
		assert.Equal(t, before.AllocCount+2, seen.AllocCount)
		bookParts(s.parts, dst)
		require.True(t, s.parts.Seen(reading))
		late := s.batching(nil, partlyThere)
		late.hold(dst, batchStart{counted: true})
		booked := r.statsWithParts(s)
		assert.Equal(t, before.LiveCount, booked.LiveCount)
		assert.Equal(t, seen.AllocCount, booked.AllocCount, "no count falls")
		if fails {
			late.Fail(ErrClosed)
		} else {
			require.True(t, late.promise.Complete(Batch{}, context.Canceled))
			s.ref.Call(&late.claim)
		}
		n := r.stats(s)
		assert.Equal(t, seen.AllocCount, n.AllocCount)
		assert.Equal(t, before.FreeCount+2, n.FreeCount)
		assert.Equal(t, before.LiveBytes, n.LiveBytes)
		r.balanced(s)
	}
}

// statsWithParts is stats while a reading has counted parts, of which no free counts yet.
func (r *rig) statsWithParts(s *Stream) Stats {
	r.t.Helper()
	n, err := s.Stats(context.Background())
	require.NoError(r.t, err)
	return n
}
