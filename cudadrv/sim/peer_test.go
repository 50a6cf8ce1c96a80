package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// pair opens two devices of a Driver.
func pair(t *testing.T, config sim.Config) (first, second *sim.Device) {
	t.Helper()
	config.Devices = 2
	drv, first := start(t, config)
	dev, err := drv.Open(1)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, first.Close())
		assert.NoError(t, dev.Close())
	})
	return first, dev.(*sim.Device)
}

func TestPeers(t *testing.T) {
	first, second := pair(t, sim.Config{})
	assert.NotEqual(t, first.Context(), second.Context())
	for ordinal, want := range []bool{false, true} {
		can, err := first.DeviceCanAccessPeer(ordinal)
		require.NoError(t, err)
		assert.Equal(t, want, can)
	}
	for _, none := range []int{-1, 2} {
		_, err := first.DeviceCanAccessPeer(none)
		require.ErrorIs(t, err, cudadrv.InvalidDevice)
		require.ErrorIs(t, first.MemSetPeerAccess(0, granule, none), cudadrv.InvalidDevice)
	}
	p, err := first.MemAddressReserve(granule)
	require.NoError(t, err)
	require.ErrorIs(t, first.MemSetPeerAccess(p, granule, 1), cudadrv.InvalidValue, "nothing is mapped")
	h, err := first.MemCreate(granule)
	require.NoError(t, err)
	require.NoError(t, first.MemMap(p, granule, h))
	require.NoError(t, first.MemSetPeerAccess(p, granule, 1))
	require.ErrorIs(t, first.MemsetD8Async(p, 0, 1, 0), cudadrv.IllegalAddress, "the other device has access, not this one")
	require.NoError(t, first.MemSetPeerAccess(p, granule, 0))
	require.NoError(t, first.MemsetD8Async(p, 0, 1, 0))
}

func TestCopiesBetweenDevicesThatCannotBe(t *testing.T) {
	first, second := pair(t, sim.Config{})
	here, there := first.Context(), second.Context()
	p, err := first.MemAlloc(granule)
	require.NoError(t, err)
	q, err := second.MemAlloc(granule)
	require.NoError(t, err)
	apart := newStream(t, second)
	require.ErrorIs(t, first.MemcpyPeerAsync(q, there, p, 7, 1, 0), cudadrv.InvalidContext)
	require.ErrorIs(t, first.MemcpyPeerAsync(q, 7, p, here, 1, 0), cudadrv.InvalidContext)
	require.ErrorIs(t, first.MemcpyPeerAsync(q, there, p, here, -1, 0), cudadrv.InvalidValue)
	for _, c := range []struct { // memory of the other one
		dst, src cudadrv.Ptr
		to, from cudadrv.Context
		says     string
	}{
		{p, p, there, here, fmt.Sprintf("1 bytes at %#x of device 1 ", p)},
		{q, q, there, here, fmt.Sprintf("1 bytes at %#x of device 0 ", q)},
		{q, q, here, there, fmt.Sprintf("1 bytes at %#x of device 0 ", q)},
		{p, p, here, there, fmt.Sprintf("1 bytes at %#x of device 1 ", p)},
	} {
		err := first.MemcpyPeerAsync(c.dst, c.to, c.src, c.from, 1, 0)
		require.ErrorIs(t, err, cudadrv.IllegalAddress)
		require.ErrorContains(t, err, c.says)
	}
	require.ErrorIs(t, first.MemcpyPeerAsync(q, there, p, here, granule+1, 0), cudadrv.IllegalAddress)
	require.ErrorIs(t, first.MemcpyPeerAsync(p, here, p+8, here, 8, apart), cudadrv.InvalidHandle, "a stream of neither")
	require.ErrorIs(t, first.MemcpyPeerAsync(q, there, q, there, 8, 0), cudadrv.InvalidHandle, "the default stream of neither")
	require.NoError(t, first.MemcpyPeerAsync(q, there, p, here, 0, 0))
	require.NoError(t, first.MemcpyPeerAsync(q, there, p, here, granule, apart))
	assert.Zero(t, first.Drained())
	require.NoError(t, second.StreamSynchronize(apart))
	assert.Greater(t, second.Now(), 5*time.Microsecond)
	assert.Equal(t, first.Now(), second.Now(), "all devices have one clock")

	took := func(submit func(s cudadrv.Stream) error) time.Duration {
		s, begin := newStream(t, first), first.Now()
		require.NoError(t, submit(s))
		require.NoError(t, first.StreamSynchronize(s))
		return first.Now() - begin
	}
	assert.Equal(t,
		took(func(s cudadrv.Stream) error { return first.MemcpyDtoDAsync(p, p+cudadrv.Ptr(granule/2), granule/2, s) }),
		took(func(s cudadrv.Stream) error {
			return first.MemcpyPeerAsync(p, here, p+cudadrv.Ptr(granule/2), here, granule/2, s)
		}),
		"a copy within one device")

	onto := took(func(s cudadrv.Stream) error { return first.MemcpyPeerAsync(q, there, p, here, granule, s) })
	assert.Equal(t, onto, took(func(s cudadrv.Stream) error { return first.MemcpyPeerAsync(p, here, q, there, granule, s) }), "as long as back")
	assert.Greater(t, onto, took(func(s cudadrv.Stream) error {
		return first.MemcpyPeerAsync(p, here, p+cudadrv.Ptr(granule/2), here, granule/2, s)
	}))

	closed := sim.New(sim.Config{Devices: 2})
	only, err := closed.Open(0)
	require.NoError(t, err)
	require.ErrorIs(t, only.(*sim.Device).MemcpyPeerAsync(0, closed.Device(1).Context(), 0, closed.Device(0).Context(), 0, 0),
		cudadrv.InvalidContext, "the other device is not open")
	require.NoError(t, only.Close())
}

// A stream waits for an event of another device: the copy after the wait reads the bytes that the work before the event wrote,
// even if the host has not waited for the first device.
func TestStreamsWaitForEventsOfOtherDevices(t *testing.T) {
	first, second := pair(t, sim.Config{Bytes: true})
	p, err := first.MemAlloc(granule)
	require.NoError(t, err)
	q, err := second.MemAlloc(granule)
	require.NoError(t, err)
	from, to := newStream(t, first), newStream(t, second)
	e, err := first.EventCreate()
	require.NoError(t, err)
	require.NoError(t, first.Launch(from, time.Second))
	require.NoError(t, first.MemsetD8Async(p, 5, granule, from))
	require.NoError(t, first.EventRecord(e, from))
	require.NoError(t, second.StreamWaitEvent(to, e))
	require.NoError(t, second.MemcpyPeerAsync(q, second.Context(), p, first.Context(), granule, to))
	got := make([]byte, 4)
	require.NoError(t, second.MemcpyDtoHAsync(got, q, to))
	assert.Equal(t, []byte{5, 5, 5, 5}, got)
	assert.Greater(t, second.Now(), time.Second)

	// The waiting device has work until then, though nothing was queued after the wait.
	require.NoError(t, second.Launch(to, time.Second))
	back, err := second.EventCreate()
	require.NoError(t, err)
	require.NoError(t, second.EventRecord(back, to))
	require.NoError(t, first.StreamWaitEvent(from, back))
	before := first.Now()
	require.NoError(t, first.CtxSynchronize())
	assert.Equal(t, before+time.Second, first.Now())

	require.ErrorIs(t, first.EventRecord(back, from), cudadrv.InvalidHandle, "records are a device's own")
	require.ErrorIs(t, second.StreamWaitEvent(to, e+100), cudadrv.InvalidHandle)
	require.NoError(t, first.BeginCapture(from))
	require.NoError(t, first.EventRecord(e, from))
	require.ErrorIs(t, second.StreamWaitEvent(to, e), cudadrv.CaptureIsolation)
	require.ErrorIs(t, first.StreamWaitEvent(from, back), cudadrv.CaptureIsolation)
	_, err = first.EndCapture(from)
	require.Error(t, err)
}

// Devices of two drivers share nothing: the ids of one are refused by the other, also where it has given out as many.
func TestIDsOfOtherDriversAreRefused(t *testing.T) {
	here, there := load(t, sim.Config{}), load(t, sim.Config{})
	for _, l := range []*loaded{here, there} {
		_, err := l.EventCreate()
		require.NoError(t, err)
	}
	event, err := there.EventCreate()
	require.NoError(t, err)
	handle, err := there.MemCreate(granule)
	require.NoError(t, err)
	other := there.Context()
	for name, err := range map[string]error{
		"event":    here.EventDestroy(event),
		"record":   here.EventRecord(event, here.stream),
		"stream":   here.StreamSynchronize(there.stream),
		"launch":   here.LaunchKernel(here.empty, shape(1), nil, there.stream),
		"function": here.LaunchKernel(there.empty, shape(1), nil, here.stream),
		"module":   here.ModuleUnload(there.module),
	} {
		require.ErrorIs(t, err, cudadrv.InvalidHandle, name)
	}
	require.Error(t, here.MemRelease(handle))
	p, err := here.MemAlloc(granule)
	require.NoError(t, err)
	require.ErrorIs(t, here.MemcpyPeerAsync(p, here.Context(), p, other, granule, here.stream), cudadrv.InvalidContext)
	for _, id := range []uint64{uint64(event), uint64(there.stream), uint64(there.empty), uint64(other)} {
		assert.Less(t, id, uint64(1)<<53, "a number in JSON has it")
	}
}

// Devices of two drivers share no events, and the error says so.
func TestNoEventsOfOtherDrivers(t *testing.T) {
	_, here := start(t, sim.Config{})
	_, there := start(t, sim.Config{})
	event, err := there.EventCreate()
	require.NoError(t, err)
	err = here.StreamWaitEvent(newStream(t, here), event)
	require.ErrorIs(t, err, cudadrv.InvalidHandle)
	require.ErrorContains(t, err, "devices of two drivers (sim.New) share nothing")
}
