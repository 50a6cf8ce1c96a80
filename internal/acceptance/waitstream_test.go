package acceptance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// copiedOut plays layers of 256 MiB: each is computed, copied out on a second stream, and freed once
// the first stream waits for the copy. The host submits all of it before the device has begun.
func copiedOut(t *testing.T, layers int, uses func(x vram.Buffer, copies *vram.Stream) (end func())) (reservedBytes int64) {
	t.Helper()
	d := vramtest.Open(t)
	computes, copies := d.Stream(), d.Stream()
	for range layers {
		x := must(t, computes, 256*mib)
		d.Launch(computes, time.Millisecond, vramtest.Writes(x))
		require.NoError(t, copies.WaitStream(computes))
		end := uses(x, copies)
		d.Launch(copies, 5*time.Millisecond, vramtest.Reads(x))
		end()
		require.NoError(t, computes.WaitStream(copies))
		require.NoError(t, x.Free())
	}
	assert.Zero(t, d.Now(), "the host has not waited")
	d.Advance(time.Minute)
	return d.Stats().PeakReservedBytes
}

// A use that ended before its stream was waited for keeps no memory, however far the device is
// after it: the device keeps the order.
func TestMemoryFreedBehindAWaitComesHomeAtOnce(t *testing.T) {
	ends := func(x vram.Buffer, copies *vram.Stream) func() {
		u, err := x.Use(copies)
		require.NoError(t, err)
		return func() { require.NoError(t, u.Done()) }
	}
	assert.EqualValues(t, 256*mib, copiedOut(t, 48, ends))
}

// A use that lasts until the free may include work after the wait: the next wait covers it.
func TestARecordedUseEndsBehindTheNextWait(t *testing.T) {
	lasts := func(x vram.Buffer, copies *vram.Stream) func() {
		require.NoError(t, x.RecordStream(copies))
		return func() {}
	}
	assert.EqualValues(t, 2*256*mib, copiedOut(t, 48, lasts))
}

// The wait covers uses that ended before it, of memory freed before it or after, and no later ones.
func TestAWaitCoversWhatEndedBefore(t *testing.T) {
	d := vramtest.Open(t)
	a, b, c := d.Stream(), d.Stream(), d.Stream()
	used := func(by ...*vram.Stream) vram.Buffer {
		x := must(t, a, 16*mib)
		for _, s := range by {
			u, err := x.Use(s)
			require.NoError(t, err)
			d.Launch(s, time.Second, vramtest.Reads(x))
			require.NoError(t, u.Done())
		}
		return x
	}
	pending := func() int64 {
		_, err := a.Stats(t.Context())
		require.NoError(t, err)
		return d.Stats().PendingBytes
	}
	freedBefore, freedAfter, byTwo := used(b), used(b), used(b, c)
	freeAll(t, freedBefore, byTwo)
	assert.EqualValues(t, 32*mib, pending())
	require.NoError(t, a.WaitStream(b))
	assert.EqualValues(t, 16*mib, pending(), "c's use of one is not covered")
	freeAll(t, freedAfter)
	assert.EqualValues(t, 16*mib, pending())
	freeAll(t, used(b))
	assert.EqualValues(t, 32*mib, pending(), "a use behind the wait")
	require.NoError(t, a.WaitStream(c))
	assert.EqualValues(t, 16*mib, pending())
	x, y := must(t, a, 16*mib), must(t, a, 16*mib)
	d.Launch(a, time.Second, vramtest.Writes(x, y))
	freeAll(t, x, y)
	d.Advance(time.Minute)
}

// Memory that was freed after a wait goes to other streams with a fence of this one, which comes
// after the wait.
func TestMemoryBehindAWaitGoesToOthersBehindAFence(t *testing.T) {
	d := vramtest.Open(t, vramtest.Config(vram.Config{LimitBytes: 64 * mib}))
	a, b, c := d.Stream(), d.Stream(), d.Stream()
	x := must(t, a, 64*mib)
	u, err := x.Use(b)
	require.NoError(t, err)
	d.Launch(b, time.Second, vramtest.Reads(x))
	require.NoError(t, u.Done())
	require.NoError(t, a.WaitStream(b))
	freeAll(t, x)
	y := must(t, c, 64*mib)
	d.Launch(c, time.Second, vramtest.Writes(y))
	assert.GreaterOrEqual(t, d.Now(), time.Second, "the host waited for a, whose fence is behind b's work")
	freeAll(t, y)
}

// A wait that the driver refuses covers nothing.
func TestAWaitForAStreamThatFails(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	a, b := h.stream(), h.stream()
	x := must(t, a, 16*mib)
	u, err := x.Use(b)
	require.NoError(t, err)
	require.NoError(t, h.gpu.Launch(b.Handle(), time.Second))
	require.NoError(t, u.Done())
	freeAll(t, x)
	for _, call := range []string{"cuEventRecord", "cuStreamWaitEvent"} {
		require.NoError(t, h.faults.Add(fault.Rule{Func: call, Result: cudadrv.Unknown}))
		require.ErrorIs(t, a.WaitStream(b), cudadrv.Unknown)
		h.faults.Clear()
		assert.EqualValues(t, 16*mib, h.Stats().PendingBytes)
	}
	require.NoError(t, a.WaitStream(b))
	freeAll(t, must(t, a, 16*mib))
	assert.EqualValues(t, 16*mib, h.Stats().ReservedBytes)
	h.addsUp()
}

// Streams that cannot be waited for are refused, and those that need no wait make no call.
func TestAWaitForAStreamIsRefused(t *testing.T) {
	h, other := openHouse(t, vram.Config{}, sim.Config{}), openHouse(t, vram.Config{}, sim.Config{})
	a, closed := h.stream(), h.stream()
	require.NoError(t, closed.Close())
	var none *vram.Stream
	require.ErrorIs(t, none.WaitStream(a), vram.ErrNotOpen)
	require.ErrorIs(t, a.WaitStream(none), vram.ErrNotOpen)
	require.ErrorIs(t, a.WaitStream(new(vram.Stream)), vram.ErrNotOpen)
	require.ErrorIs(t, a.WaitStream(other.stream()), vram.ErrForeign)
	require.ErrorIs(t, closed.WaitStream(a), vram.ErrClosed)
	before := h.driverCalls()
	require.NoError(t, a.WaitStream(a))
	require.NoError(t, a.WaitStream(closed))
	assert.Equal(t, before, h.driverCalls())
	var refused *vram.CaptureError
	h.capture(a, func() { require.ErrorAs(t, a.WaitStream(h.stream()), &refused) })
}
