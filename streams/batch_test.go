package streams

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// mixed are sizes of every kind: none, small, of one class, large, and many.
func mixed(n int) []int64 {
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = []int64{0, 1, 512, 4 * kib, 4 * kib, 48 * kib, 64 * kib, 65 * kib, 300 * kib, 1 * mib, 1*mib + 1, 5 * mib}[i%12]
	}
	return sizes
}

// disjoint checks that the buffers have the requested sizes and that no two share a byte.
func disjoint(t require.TestingT, buffers []Buffer, sizes []int64) {
	require.Len(t, buffers, len(sizes))
	type place struct{ from, end cudadrv.Ptr }
	var places []place
	for i, b := range buffers {
		require.True(t, b.Live())
		require.Equal(t, sizes[i], b.Bytes())
		p := place{b.Ptr(), b.Ptr() + cudadrv.Ptr(max(sizes[i], 1))}
		for _, q := range places {
			require.False(t, p.from < q.end && q.from < p.end, "buffer %d shares memory", i)
		}
		places = append(places, p)
	}
}

// A batch of any sizes, cold or warm, has the requested buffers, is freed whole, and leaves books
// that balance.
func TestABatchIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, 4096*mib)
	s := r.stream(core.Budget{})
	for _, n := range []int{0, 1, 12, 64, 65, 1000} {
		sizes := mixed(n)
		for range 3 {
			buffers := make([]Buffer, n)
			require.NoError(t, s.AllocBatch(buffers, sizes))
			disjoint(t, buffers, sizes)
			r.stats(s)
			require.NoError(t, s.FreeBatch(buffers))
			assert.Zero(t, r.stats(s).LiveCount)
		}
	}
	r.balanced(s)
}

// Batches mixed with single requests and frees in any order never share memory, and nothing is
// lost.
func TestBatchesAmongOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1024*mib)
	s := r.stream(core.Budget{})
	rapid.Check(t, func(t *rapid.T) {
		var live []Buffer
		var sizes []int64
		size := rapid.OneOf(rapid.Int64Range(0, 70*kib), rapid.Int64Range(0, 4*mib), rapid.SampledFrom([]int64{512, 64 * kib, mib}))
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				want := rapid.SliceOfN(size, 0, 70).Draw(t, "sizes")
				got := make([]Buffer, len(want))
				require.NoError(t, s.AllocBatch(got, want))
				live, sizes = append(live, got...), append(sizes, want...)
			case 1:
				n := size.Draw(t, "size")
				b, err := s.Alloc(n)
				require.NoError(t, err)
				live, sizes = append(live, b), append(sizes, n)
			case 2:
				n := rapid.IntRange(0, len(live)).Draw(t, "freed")
				require.NoError(t, s.FreeBatch(live[:n]))
				live, sizes = live[n:], sizes[n:]
			default:
				if len(live) > 0 {
					require.NoError(t, live[0].Free())
					live, sizes = live[1:], sizes[1:]
				}
			}
			disjoint(t, live, sizes)
		}
		require.NoError(t, s.FreeBatch(live))
	})
	assert.Zero(t, r.stats(s).LiveCount)
	r.balanced(s)
}

// Blocks that are freed together merge: after a batch and its free one buffer of the whole length
// fits without more memory.
func TestABatchLiesTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	sizes := make([]int64, 64)
	for i := range sizes {
		sizes[i] = mib
	}
	buffers := make([]Buffer, len(sizes))
	require.NoError(t, s.AllocBatch(buffers, sizes))
	for i := 1; i < len(buffers); i++ {
		assert.Equal(t, buffers[i-1].Ptr()+cudadrv.Ptr(mib), buffers[i].Ptr(), "side by side, in the order that was asked")
	}
	assert.EqualValues(t, 64*mib, r.books().ReservedBytes, "not a page more than they need")
	require.NoError(t, s.FreeBatch(buffers))
	b, err := s.Alloc(64 * mib)
	require.NoError(t, err)
	require.NoError(t, b.Free())
}

// A batch that does not fit fails as one, holds nothing afterwards, and its error names the
// holders.
func TestABatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	held, err := s.Alloc(30 * mib)
	require.NoError(t, err)
	sizes := append(mixed(24), 40*mib)
	buffers := make([]Buffer, len(sizes))
	var oom *pool.OutOfMemoryError
	require.ErrorAs(t, s.AllocBatch(buffers, sizes), &oom)
	assert.Equal(t, make([]Buffer, len(sizes)), buffers, "nothing is handed out")
	assert.EqualValues(t, 1, r.stats(s).LiveCount)
	_, err = s.AllocBatchAsync(context.Background(), sizes).Await(context.Background())
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	assert.EqualValues(t, 1, r.stats(s).LiveCount)
	require.NoError(t, held.Free())
	require.NoError(t, s.AllocBatch(buffers, sizes), "with the memory free it fits")
	disjoint(t, buffers, sizes)
	require.NoError(t, s.FreeBatch(buffers))
	r.balanced(s)
}

// A driver call that fails, whichever it is, fails the whole batch and loses nothing.
func TestABatchWhoseDriverCallFails(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"cuMemCreate", "cuMemMap", "cuMemSetAccess"} {
		for first := uint64(1); first <= 6; first++ {
			r := newRig(t, 256*mib)
			s := r.stream(core.Budget{})
			require.NoError(t, r.faults.Add(fault.Rule{Func: function, First: first, Result: cudadrv.Unknown}))
			sizes := mixed(48)
			buffers := make([]Buffer, len(sizes))
			if err := s.AllocBatch(buffers, sizes); err != nil {
				require.ErrorIs(t, err, cudadrv.Unknown)
				assert.Equal(t, make([]Buffer, len(sizes)), buffers)
				assert.Zero(t, r.stats(s).LiveCount)
				r.faults.Clear()
				require.NoError(t, s.AllocBatch(buffers, sizes))
			}
			disjoint(t, buffers, sizes)
			require.NoError(t, s.FreeBatch(buffers))
			r.balanced(s)
		}
	}
}

// Sizes that cannot be are named, and nothing is handed out.
func TestABatchThatCannotBe(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	buffers := make([]Buffer, 3)
	var wrong *BatchError
	require.ErrorAs(t, s.AllocBatch(buffers, []int64{1, 2, -3}), &wrong)
	assert.Equal(t, 2, wrong.Index)
	require.ErrorIs(t, wrong, ErrNegative)
	require.ErrorAs(t, s.AllocBatch(buffers, []int64{1, 65 * mib, 3}), &wrong)
	assert.Equal(t, 1, wrong.Index)
	require.ErrorIs(t, wrong, ErrTooLarge)
	err := s.AllocBatch(buffers, []int64{40 * mib, 40 * mib, 3})
	require.ErrorIs(t, err, ErrTooLarge, "each fits, all do not")
	require.False(t, errors.As(err, new(*BatchError)))
	var length *LengthError
	require.ErrorAs(t, s.AllocBatch(buffers, []int64{1}), &length)
	assert.Equal(t, LengthError{3, 1}, *length)
	assert.Zero(t, r.stats(s).AllocCount)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.AllocBatch(buffers, []int64{1, 2, 3}), ErrClosed)
	require.ErrorIs(t, s.AllocBatch(nil, nil), nil, "nothing is always there")
}

// A batch of frees names the buffers that are not live and frees all others, on any streams.
func TestAFreeOfABatchSkipsWhatIsNotLive(t *testing.T) {
	t.Parallel()
	r := newRig(t, 256*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	buffers := make([]Buffer, 40)
	require.NoError(t, s.AllocBatch(buffers[:20], mixed(20)))
	require.NoError(t, other.AllocBatch(buffers[20:], mixed(20)))
	require.NoError(t, buffers[7].Free())
	require.NoError(t, buffers[30].Free())
	buffers = append(buffers, Buffer{}, buffers[3])
	var wrong *BatchError
	for _, err := range []error{Buffer{}.Free(), freeBatch(make([]Buffer, 1))} {
		require.ErrorIs(t, err, ErrBadFree)
		require.NotErrorIs(t, err, ErrDoubleFree, "it never was a buffer")
	}
	require.ErrorAs(t, s.FreeBatch(buffers), &wrong)
	assert.Equal(t, 7, wrong.Index)
	assert.Equal(t, 4, wrong.Count)
	require.ErrorIs(t, wrong, ErrDoubleFree)
	assert.Zero(t, r.stats(s).LiveCount)
	assert.Zero(t, r.stats(other).LiveCount)
	r.balanced(s, other)
}

// A batch whose request ends at any moment leaves no blocks allocated.
func TestACancelledBatchGoesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{})
	sizes := mixed(36)
	release := make(chan struct{})
	r.faults.SetBefore(func(name string) {
		if name == "cuMemCreate" {
			<-release
		}
	})
	cancelled := s.AllocBatchAsync(context.Background(), sizes)
	ctx, cancel := context.WithCancel(context.Background())
	ended := s.AllocBatchAsync(ctx, sizes)
	wanted := s.AllocBatchAsync(context.Background(), sizes)
	assert.True(t, cancelled.Cancel())
	cancel()
	_, err := ended.Await(context.Background())
	require.ErrorIs(t, err, context.Canceled)
	close(release)
	b, err := wanted.Await(context.Background())
	require.NoError(t, err)
	disjoint(t, b.Buffers(), sizes)
	r.until(func() bool { return r.stats(s).LiveCount == uint64(len(sizes)) })
	require.NoError(t, b.Free())
	assert.Zero(t, r.stats(s).LiveCount)
	r.balanced(s)
}

// A panic in the turn of a batch fails that batch and loses nothing.
func TestAPanicInTheTurnOfABatch(t *testing.T) {
	t.Parallel()
	for _, at := range []point{beforeSearch, beforeAnswer} {
		r := newRig(t, 512*mib)
		s := r.stream(core.Budget{})
		sizes := mixed(36)
		buffers := make([]Buffer, len(sizes))
		panicked := false
		s.setHook(func(p point) {
			if p == at && !panicked {
				panicked = true
				panic(recoveredtest.Planted("planted"))
			}
		})
		require.ErrorContains(t, s.AllocBatch(buffers, sizes), "planted")
		assert.True(t, panicked)
		assert.Equal(t, make([]Buffer, len(sizes)), buffers)
		r.until(func() bool { return r.stats(s).LiveCount == 0 })
		require.NoError(t, s.AllocBatch(buffers, sizes))
		disjoint(t, buffers, sizes)
		require.NoError(t, s.FreeBatch(buffers))
		r.balanced(s)
	}
}

// A batch that reaches its stream after the close fails, and its slots from magazines go back to
// the pool.
func TestABatchThatReachesAClosedStream(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 4*kib).Free())
	sizes := []int64{4 * kib, 3 * mib, 4 * kib}
	buffers := make([]Buffer, len(sizes))
	require.False(t, s.takeBatch(buffers, sizes))
	late := s.batching(buffers, sizes)
	require.NoError(t, s.Close())
	s.ref.Call(&late.claim)
	_, err := late.promise.Future().Await(context.Background())
	require.ErrorIs(t, err, ErrClosed)
	assert.Equal(t, make([]Buffer, len(sizes)), buffers)
	<-s.ref.Done()
	assert.True(t, control(s).Gone())
	n := control(s).LastStats()
	assert.Equal(t, uint64(1), n.AllocCount, "as if it had never been asked for")
	r.until(func() bool { return r.books().LentBytes == 0 })
}

// A batch that waits for the pool when its stream is closed fails, and does not count.
func TestCloseFailsABatchThatWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 4*kib).Free())
	entered, release := r.holdUp("cuMemCreate")
	f := s.AllocBatchAsync(context.Background(), []int64{4 * kib, 30 * mib, 4 * kib})
	<-entered
	require.Equal(t, 1, r.stats(s).Waiting)
	require.NoError(t, s.Close())
	_, err := f.Await(context.Background())
	require.ErrorIs(t, err, ErrClosed)
	release()
	<-s.ref.Done()
	n := control(s).LastStats()
	assert.Equal(t, uint64(1), n.AllocCount)
	assert.Equal(t, uint64(1), n.FreeCount)
	r.until(func() bool { return r.books().LentBytes == 0 })
}
