package streams

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
)

// A buffer that a closed stream was about to zero is not zeroed: the CUDA stream may be gone. The
// buffer is freed.
func TestNothingIsZeroedOnceCloseHasBegun(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	b := must(t, s, kib)
	before := r.faults.Calls("cuMemsetD8Async")
	s.cuda.closing.Store(true)
	err := s.finish(b, &Request{Bytes: kib, Zero: true})
	s.cuda.closing.Store(false)
	require.ErrorIs(t, err, ErrClosed)
	assert.Equal(t, before, r.faults.Calls("cuMemsetD8Async"))
	require.ErrorIs(t, b.Free(), ErrBadFree)
	assert.Zero(t, s.cuda.calls.Load(), "Close waits for none")
}

// For any alignment and size, the address is a multiple, no memory is shared, and none is lost.
func TestAlignedBuffers(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.stream(core.Budget{})
	rapid.Check(t, func(t *rapid.T) {
		var live []Buffer
		var sizes []int64
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			if len(live) > 0 && rapid.IntRange(0, 2).Draw(t, "free") == 0 {
				require.NoError(t, live[0].Free())
				live, sizes = live[1:], sizes[1:]
				continue
			}
			want := Request{
				Bytes: rapid.OneOf(rapid.Int64Range(0, 3*mib), rapid.SampledFrom([]int64{1, 4 * kib, 2 * mib})).Draw(t, "bytes"),
				Align: int64(1) << rapid.IntRange(0, 24).Draw(t, "align"),
			}
			b, err := s.AllocFor(context.Background(), want)
			require.NoError(t, err)
			require.Zero(t, int64(b.Ptr())%want.Align)
			live, sizes = append(live, b), append(sizes, want.Bytes)
			disjoint(t, live, sizes)
		}
		require.NoError(t, s.FreeBatch(live))
	})
	assert.Zero(t, r.stats(s).LiveCount)
	r.balanced(s)
}

// Pages that are aligned by themselves serve a request of whole pages with nothing to spare.
func TestAlignedToAPageNeedsNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	var all []Buffer
	for range 4 {
		b, err := s.AllocFor(context.Background(), Request{Bytes: 2 * mib, Align: 2 * mib})
		require.NoError(t, err)
		assert.Zero(t, int64(b.Ptr())%(2*mib))
		all = append(all, b)
	}
	_, err := s.AllocFor(context.Background(), Request{Bytes: 1, Align: 2 * mib})
	require.ErrorContains(t, err, "out of memory")
	require.NoError(t, s.FreeBatch(all))
	b, err := s.AllocFor(context.Background(), Request{Bytes: 4 * mib, Align: 8 * mib})
	if err == nil { // where the arena begins decides
		assert.Zero(t, int64(b.Ptr())%(8*mib))
		require.NoError(t, b.Free())
	} else {
		require.ErrorContains(t, err, "out of memory")
	}
}

// An invalid alignment is refused at once.
func TestAlignmentsThatCannotBe(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	b, err := s.Alloc(4 * kib)
	require.NoError(t, err)
	require.NoError(t, b.Free()) // a magazine has it: it must not answer
	for _, align := range []int64{-1, -512, 3, 513, 1000, 128 * mib} {
		var wrong *AlignError
		_, err := s.AllocFor(context.Background(), Request{Bytes: 4 * kib, Align: align})
		require.ErrorAs(t, err, &wrong, "%d", align)
		assert.Equal(t, AlignError{align, 64 * mib}, *wrong)
		require.ErrorContains(t, err, "power of two")
	}
	assert.Zero(t, r.stats(s).LiveCount)
}

// memsets records a device's memsets.
func (r *rig) memsets() *[]string {
	calls := &[]string{}
	r.faults.SetBefore(func(name string) {
		if name == "cuMemsetD8Async" {
			*calls = append(*calls, name)
		}
	})
	return calls
}

// Zeroed memory costs one memset, cached or not, and none when nothing is wanted or held.
func TestZeroIsOneMemset(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	calls := r.memsets()
	for i, bytes := range []int64{4 * kib, 4 * kib, 3 * mib} { // with the pool's help, from a magazine, from a range
		b, err := s.AllocFor(context.Background(), Request{Bytes: bytes, Zero: true})
		require.NoError(t, err)
		require.Len(t, *calls, i+1)
		require.NoError(t, b.Free())
	}
	b, err := s.AllocFor(context.Background(), Request{Zero: true})
	require.NoError(t, err)
	require.NoError(t, b.Free())
	assert.Len(t, *calls, 3)
}

// A memset that fails, wherever the memory came from, leaves nothing held.
func TestAMemsetThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuMemsetD8Async", Count: fault.Forever, Result: cudadrv.IllegalAddress}))
	for range 3 { // with the pool's help, from a magazine
		_, err := s.AllocFor(context.Background(), Request{Bytes: 4 * kib, Zero: true})
		require.ErrorIs(t, err, cudadrv.IllegalAddress)
		assert.Zero(t, r.stats(s).LiveCount)
	}
	r.faults.Clear()
	r.faults.SetBefore(func(name string) {
		if name == "cuMemsetD8Async" {
			panic(recoveredtest.Planted("planted"))
		}
	})
	for _, bytes := range []int64{4 * kib, 3 * mib} {
		_, err := s.AllocFor(context.Background(), Request{Bytes: bytes, Zero: true})
		require.ErrorContains(t, err, "planted")
		assert.Zero(t, r.stats(s).LiveCount)
	}
	r.balanced(s)
}

// A request that is cancelled while its memory is being zeroed gives it back.
func TestCancelDuringTheMemset(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	reached, release := make(chan struct{}), make(chan struct{})
	r.faults.SetBefore(func(name string) {
		if name == "cuMemsetD8Async" {
			close(reached)
			<-release
		}
	})
	f := s.AllocAsync(context.Background(), Request{Bytes: 3 * mib, Zero: true})
	<-reached
	assert.True(t, f.Cancel())
	close(release)
	r.until(func() bool { return r.stats(s).LiveCount == 0 })
	r.balanced(s)
}

// Close synchronises after the last memset: the pages that it returns have no fence, and must not
// be zeroed when another stream has them.
func TestCloseSynchronisesBehindTheMemset(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(s *Stream){
		"with the pool's help": func(*Stream) {},
		"from a magazine":      func(s *Stream) { require.NoError(t, must(t, s, 4*kib).Free()) },
	} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		prepare(s)
		reached, release := make(chan struct{}), make(chan struct{})
		var submitted, early atomic.Bool
		r.faults.SetBefore(func(call string) {
			switch call {
			case "cuMemsetD8Async":
				close(reached)
				<-release
				submitted.Store(true)
			case "cuStreamSynchronize":
				early.Store(!submitted.Load())
			}
		})
		var all sync.WaitGroup
		all.Go(func() {
			if b, err := s.AllocFor(context.Background(), Request{Bytes: 4 * kib, Zero: true}); err == nil {
				assert.NoError(t, b.Free())
			}
		})
		<-reached
		all.Go(func() { assert.NoError(t, s.Close()) })
		r.until(s.cuda.closing.Load)
		for range 1000 { // so that Close gets as far as it can
			runtime.Gosched()
		}
		close(release)
		all.Wait()
		assert.False(t, early.Load(), name)
	}
}

// Close waits for a memset in progress: its stream must not be destroyed before.
func TestCloseWaitsForTheMemset(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	reached, release := make(chan struct{}), make(chan struct{})
	destroyed := make(chan struct{})
	r.faults.SetBefore(func(name string) {
		switch name {
		case "cuMemsetD8Async":
			close(reached)
			<-release
		case "cuStreamDestroy":
			close(destroyed)
		}
	})
	f := s.AllocAsync(context.Background(), Request{Bytes: 3 * mib, Zero: true})
	<-reached
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	r.until(func() bool { return s.cuda.closing.Load() })
	select {
	case <-destroyed:
		t.Error("the stream is gone, and its memset is not submitted yet")
	default:
	}
	close(release)
	require.NoError(t, <-closed)
	if b, err := f.Await(context.Background()); err == nil {
		require.NoError(t, b.Free())
	}
	_, err := s.AllocFor(context.Background(), Request{Bytes: 1, Zero: true})
	require.ErrorIs(t, err, ErrClosed)
}

// Tags are in the list of live buffers, and end with their buffer.
func TestTagsNameLiveBuffers(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	tags := func() map[string]int {
		found := map[string]int{}
		for _, b := range control(s).LiveBuffers() {
			found[b.Tag]++
		}
		return found
	}
	var all []Buffer
	for range 2 { // from the pool, then from the cache
		for _, want := range []Request{
			{Bytes: 4 * kib, Tag: "weights"}, {Bytes: 3 * mib, Tag: "activations"}, {Bytes: mib, Align: mib, Tag: "weights"},
		} {
			b, err := s.AllocFor(context.Background(), want)
			require.NoError(t, err)
			all = append(all, b)
		}
		assert.Equal(t, map[string]int{"weights": 2, "activations": 1}, tags())
		require.NoError(t, s.FreeBatch(all))
		all = all[:0]
		assert.Empty(t, tags())
	}
	b, err := s.Alloc(4 * kib) // the slot that had a tag
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"": 1}, tags())
	require.NoError(t, b.Free())
}

// Magazines serve the alignments that each block has: the powers of two up to 512 bytes, and none.
func TestAlignmentsThatMagazinesServe(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	want := map[int64]bool{0: true}
	for align := int64(1); align <= 512; align *= 2 {
		want[align] = true
	}
	for align := int64(-1); align <= 1024; align++ {
		assert.Equal(t, want[align], (&Request{Align: align}).sized(), "%d", align)
	}
	require.NoError(t, must(t, s, 4*kib).Free())
	for align := range want {
		before := r.stats(s).MagazineHits
		b, err := s.AllocFor(t.Context(), Request{Bytes: 4 * kib, Align: align})
		require.NoError(t, err)
		assert.Equal(t, before+1, r.stats(s).MagazineHits, "%d", align)
		require.NoError(t, b.Free())
	}
}
