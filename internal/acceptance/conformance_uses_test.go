package acceptance_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// work gives a stream a kernel of that length.
func (h *house) work(s *vram.Stream, d time.Duration) {
	h.t.Helper()
	require.NoError(h.t, h.gpu.Launch(s.Handle(), d))
}

// meets reports whether an allocation of the stream's among many gets the memory of a buffer that
// was freed.
func (h *house) meets(s *vram.Stream, b vram.Buffer, count int) (met bool) {
	h.t.Helper()
	var all []vram.Buffer
	for range count {
		x := must(h.t, s, b.Bytes())
		met = met || x.Ptr() < b.Ptr()+cudadrv.Ptr(b.Bytes()) && b.Ptr() < x.Ptr()+cudadrv.Ptr(x.Bytes())
		all = append(all, x)
	}
	freeAll(h.t, all...)
	return met
}

// RMM: mr_ref_test_mt, AllocFreeDifferentThreadsDifferentStream, with announced uses in the place
// of events: one goroutine allocates on a, another uses the block on b and frees it.
func TestABlockIsAnnouncedOnAnotherStream(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: handedOver * 2 * mib}, sim.Config{})
	a, b := h.stream(), h.stream()
	blocks := make(chan vram.Buffer, handedOver)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(blocks)
		for range handedOver {
			x, err := a.Alloc(2 * mib)
			if !assert.NoError(t, err) {
				return
			}
			blocks <- x
		}
	})
	all.Go(func() {
		for x := range blocks {
			assert.NoError(t, x.RecordStream(b))
			assert.NoError(t, h.gpu.Launch(b.Handle(), time.Millisecond))
			assert.NoError(t, x.Free())
		}
	})
	all.Wait()
	c := h.stream()
	freeAll(t, must(t, c, handedOver*2*mib))
	assert.GreaterOrEqual(t, h.gpu.Now(), handedOver*time.Millisecond, "every use on b has ended")
	h.addsUp()
}

// PyTorch: test_record_stream. A block that another stream still reads when it is freed is not used
// again, and it is once that stream has finished.
func TestRecordStream(t *testing.T) {
	for _, bytes := range []int64{2 * kib, 200 * kib, 6 * mib} {
		const most = 66 // of 6 MiB: x, the other buffers that meets holds, and one more
		h := openHouse(t, vram.Config{LimitBytes: most * 6 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		x := must(t, a, bytes)
		require.NoError(t, x.RecordStream(b))
		h.work(b, time.Second)
		require.NoError(t, x.Free())
		assert.False(t, h.meets(a, x, 64), "%d bytes", bytes)
		assert.Equal(t, time.Duration(0), h.gpu.Now(), "nobody waits for it")
		assert.Positive(t, h.addsUp().PendingBytes)
		h.gpu.Advance(time.Second)
		_, err := h.Trim(t.Context(), gib) // looks, and gives nothing back
		require.NoError(t, err)
		assert.Zero(t, h.addsUp().PendingBytes, "%d bytes", bytes)
		if bytes < mib {
			assert.True(t, h.meets(a, x, 80), "%d bytes", bytes) // more than the earlier ones, which are free
		} else { // whole pages may change hands: then the memory is used again, perhaps at another address
			h.meets(a, x, most)
			assert.Equal(t, time.Second, h.gpu.Now(), "nobody waits for it")
		}
		h.addsUp()
	}
}

// PyTorch: test_record_stream_on_shifted_view (#27366). The use is announced by an address inside
// the block.
func TestRecordStreamOnAShiftedView(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	a, b := h.stream(), h.stream()
	x := must(t, a, 200*kib)
	base, found := h.Lookup(x.Ptr() + 100*1024)
	require.True(t, found)
	require.NoError(t, base.RecordStream(b))
	h.work(b, time.Second)
	require.NoError(t, x.Free())
	assert.False(t, h.meets(a, x, 64))
	_, found = h.Lookup(x.Ptr())
	assert.False(t, found)
	h.gpu.Advance(time.Second)
	_, err := h.Trim(t.Context(), gib)
	require.NoError(t, err)
	assert.True(t, h.meets(a, x, 80))
}

// PyTorch: test_caching_allocator_record_stream_oom (#19219). Frees that another stream's work
// requests wait for delays instead of failing.
func TestDelayedFreesAreNoReasonToRefuse(t *testing.T) {
	const blockBytes = 160 * mib
	h := openHouse(t, vram.Config{LimitBytes: 8 * blockBytes}, sim.Config{})
	a, b := h.stream(), h.stream()
	for range 100 {
		x, err := a.Alloc(blockBytes)
		require.NoError(t, err)
		require.NoError(t, x.RecordStream(b))
		h.work(b, 50*time.Millisecond)
		require.NoError(t, x.Free())
	}
	h.addsUp()
}

// PyTorch fails this one (#189504): the only block that fits is kept by a fence. It is searched for
// again after the fence.
func TestABlockThatOnlyAFenceKeepsIsServed(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	a, b := h.stream(), h.stream()
	x := must(t, a, 64*mib)
	require.NoError(t, x.RecordStream(b))
	h.work(b, time.Second)
	require.NoError(t, x.Free())
	y, err := a.Alloc(64 * mib)
	require.NoError(t, err)
	assert.Equal(t, x.Ptr(), y.Ptr())
	assert.Equal(t, time.Second, h.gpu.Now())
	_, err = a.Alloc(1)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
}

// A use that ended does not wait for later work of its stream, and a buffer that was handed over
// waits for its new owner only.
func TestExactEndsOfUses(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	a, b := h.stream(), h.stream()
	x := must(t, a, 64*mib)
	use, err := x.Use(b)
	require.NoError(t, err)
	h.work(b, time.Second)
	require.NoError(t, use.Done())
	h.work(b, time.Hour)
	require.NoError(t, x.Free())
	y := must(t, a, 64*mib)
	assert.Equal(t, time.Second, h.gpu.Now())
	c := h.stream()
	z, err := y.Transfer(c)
	require.NoError(t, err)
	require.ErrorIs(t, y.Free(), vram.ErrTransferred)
	h.work(c, time.Second)
	require.NoError(t, z.Free())
	must(t, a, 64*mib)
	assert.Equal(t, 2*time.Second, h.gpu.Now())
}

// Announcements are refused where they mean nothing.
func TestAnnouncementsAreRefused(t *testing.T) {
	h, other := openHouse(t, vram.Config{}, sim.Config{}), openHouse(t, vram.Config{}, sim.Config{})
	a := h.stream()
	x := must(t, a, 1)
	require.ErrorIs(t, x.RecordStream(other.stream()), vram.ErrForeign)
	require.NoError(t, x.Free())
	require.ErrorIs(t, x.RecordStream(a), vram.ErrNotLive)
	require.ErrorIs(t, vram.Use{}.Done(), vram.ErrUseOver)
}

// A device is closed with pending memory, and all of it goes back.
func TestCloseOfADeviceWithPendingMemory(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	a, b := h.stream(), h.stream()
	for _, bytes := range []int64{4 * kib, 100 * kib, 32 * mib} {
		x := must(t, a, bytes)
		require.NoError(t, x.RecordStream(b))
		h.work(b, time.Second)
		require.NoError(t, x.Free())
	}
	require.NoError(t, h.Close())
}
