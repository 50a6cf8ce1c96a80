package vram_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// capture captures what f does on the stream, which must not be disturbed: the graph has one kernel.
func (h *house) capture(s *vram.Stream, f func()) {
	h.t.Helper()
	require.NoError(h.t, h.gpu.BeginCapture(s.Handle()))
	require.NoError(h.t, h.gpu.Launch(s.Handle(), time.Millisecond))
	f()
	g, err := h.gpu.EndCapture(s.Handle())
	require.NoError(h.t, err)
	assert.Equal(h.t, []string{"cuLaunchKernel"}, g.Calls(), "nothing of the allocator's is part of the graph")
	require.NoError(h.t, h.gpu.LaunchGraph(g, s.Handle()))
}

// eachKindOfStream runs a test on a stream of the device's and on an adopted one.
func eachKindOfStream(t *testing.T, cfg vram.Config, test func(t *testing.T, h *house, s *vram.Stream)) {
	t.Helper()
	t.Run("own", func(t *testing.T) {
		h := openHouse(t, cfg, sim.Config{})
		test(t, h, h.stream())
	})
	t.Run("adopted", func(t *testing.T) {
		h := openHouse(t, cfg, sim.Config{})
		test(t, h, h.adopt())
	})
}

// While a stream is captured what needs no call on it is served; zeroing is refused with an error that says what to do.
func TestRequestsDuringACapture(t *testing.T) {
	eachKindOfStream(t, vram.Config{LimitBytes: 64 * mib}, func(t *testing.T, h *house, s *vram.Stream) {
		t.Helper()
		freeAll(t, must(t, s, 8*mib), must(t, s, 3*kib))
		var inside []vram.Buffer
		h.capture(s, func() {
			inside = append(inside, must(t, s, 8*mib), must(t, s, 3*kib), must(t, s, 20*mib)) // cached, a magazine's, and mapped
			_, err := s.AllocFor(context.Background(), vram.Request{Bytes: mib, Zero: true})
			var refused *vram.CaptureError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, s.ID(), refused.Stream)
			assert.Equal(t, "cuMemsetD8Async", refused.Call)
			assert.ErrorContains(t, err, "before the capture begins")
		})
		zeroed, err := s.AllocFor(context.Background(), vram.Request{Bytes: mib, Zero: true})
		require.NoError(t, err)
		freeAll(t, append(inside, zeroed)...)
		h.addsUp()
	})
}

// What is freed during a capture serves its own stream at once, and others once the capture has ended and a fence was recorded
// after it.
func TestFreesDuringACapture(t *testing.T) {
	eachKindOfStream(t, vram.Config{LimitBytes: 32 * mib}, func(t *testing.T, h *house, s *vram.Stream) {
		t.Helper()
		other := h.stream()
		early := must(t, s, 32*mib)
		h.capture(s, func() {
			freeAll(t, early)
			_, err := other.Alloc(32 * mib)
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			h.trim()
			again := must(t, s, 32*mib)
			assert.Equal(t, early.Ptr(), again.Ptr())
			freeAll(t, again)
			require.NoError(t, s.Return(context.Background()))
			_, err = other.Alloc(mib)
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
		})
		require.NoError(t, s.Return(context.Background()))
		y := must(t, other, 32*mib)
		assert.GreaterOrEqual(t, h.busyUntil(other), time.Millisecond, "behind the graph")
		freeAll(t, y)
		h.addsUp()
	})
}

// A request that only a fence could serve fails with both reasons.
func TestAShortageDuringACapture(t *testing.T) {
	eachKindOfStream(t, vram.Config{LimitBytes: 16 * mib}, func(t *testing.T, h *house, s *vram.Stream) {
		t.Helper()
		crumbs := []vram.Buffer{must(t, s, 6*mib), must(t, s, 4*mib), must(t, s, 6*mib)}
		freeAll(t, crumbs[0], crumbs[2])
		h.capture(s, func() {
			_, err := s.Alloc(12 * mib)
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			var refused *vram.CaptureError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, "cuEventRecord", refused.Call)
			err = s.AllocBatch(make([]vram.Buffer, 1), []int64{12 * mib})
			require.ErrorAs(t, err, &refused)
		})
		freeAll(t, must(t, s, 12*mib), crumbs[1])
	})
}

// A capture that has ended is no reason for a shortage, though nothing was asked of the stream since.
func TestAShortageAfterACapture(t *testing.T) {
	eachKindOfStream(t, vram.Config{LimitBytes: 16 * mib}, func(t *testing.T, h *house, s *vram.Stream) {
		t.Helper()
		all := must(t, s, 16*mib-4*kib)
		h.capture(s, func() {
			_, err := s.AllocFor(context.Background(), vram.Request{Bytes: kib, Zero: true})
			require.ErrorAs(t, err, new(*vram.CaptureError))
		})
		_, err := s.Alloc(8 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		require.NotErrorAs(t, err, new(*vram.CaptureError))
		err = s.AllocBatch(make([]vram.Buffer, 1), []int64{8 * mib})
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		require.NotErrorAs(t, err, new(*vram.CaptureError))
		freeAll(t, all)
	})
}

// A captured stream is not made to wait for another: the host waits.
func TestNoWaitOnACapturedStream(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 32 * mib}, sim.Config{})
	a, b := h.stream(), h.stream()
	x := must(t, a, 32*mib)
	require.NoError(t, h.gpu.Launch(a.Handle(), time.Second))
	freeAll(t, x)
	h.capture(b, func() {
		y := must(t, b, 32*mib)
		assert.GreaterOrEqual(t, h.gpu.Now(), time.Second)
		freeAll(t, y)
	})
	assert.Zero(t, h.faults.Calls("cuStreamWaitEvent"))
}

// A stream that is captured is not closed, and can be closed afterwards. The background leaves it alone.
func TestClosingACapturedStream(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // what a process makes once is made
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		s := h.stream()
		freeAll(t, must(t, s, 8*mib))
		h.capture(s, func() {
			<-time.After(3 * time.Second) // ticks, and a decay that would record
			synctest.Wait()
			var refused *vram.CaptureError
			require.ErrorAs(t, s.Close(), &refused)
			freeAll(t, must(t, s, 8*mib))
		})
		<-time.After(3 * time.Second)
		synctest.Wait()
		assert.Zero(t, h.Stats().CachedBytes)
		require.NoError(t, s.Close())
	})
}
