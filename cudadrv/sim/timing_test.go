package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

func TestTheTimeBetweenTwoEvents(t *testing.T) {
	_, dev := start(t, sim.Config{})
	s := newStream(t, dev)
	timed := func() cudadrv.Event {
		e, err := dev.EventCreateTimed()
		require.NoError(t, err)
		return e
	}
	begin, end, plain := timed(), timed(), recorded(t, dev, s)
	_, err := dev.EventElapsedTime(begin, end)
	require.ErrorIs(t, err, cudadrv.InvalidHandle, "never recorded")
	dev.Advance(time.Hour) // the stream has been idle: its last work says nothing
	require.NoError(t, dev.EventRecord(begin, s))
	require.NoError(t, dev.Launch(s, time.Millisecond+700*time.Nanosecond))
	require.NoError(t, dev.EventRecord(end, s))
	_, err = dev.EventElapsedTime(begin, end)
	require.ErrorIs(t, err, cudadrv.NotReady)
	dev.Advance(time.Second)
	took, err := dev.EventElapsedTime(begin, end)
	require.NoError(t, err)
	assert.Equal(t, time.Millisecond+500*time.Nanosecond, took, "to half a microsecond")
	back, err := dev.EventElapsedTime(end, begin)
	require.NoError(t, err)
	assert.Equal(t, -took, back)
	passed, err := dev.EventQuery(end)
	require.NoError(t, err)
	assert.True(t, passed)
	for _, wrong := range []cudadrv.Event{plain, 1} {
		_, err = dev.EventElapsedTime(begin, wrong)
		require.ErrorIs(t, err, cudadrv.InvalidHandle)
	}
	require.NoError(t, dev.BeginCapture(s))
	require.NoError(t, dev.EventRecord(end, s))
	_, err = dev.EventElapsedTime(begin, end)
	require.ErrorIs(t, err, cudadrv.CapturedEvent)
}

func TestAnEventWithTwoNames(t *testing.T) {
	drv, dev := start(t, sim.Config{Devices: 2})
	second, err := drv.Open(1)
	require.NoError(t, err)
	s := newStream(t, dev)
	e, err := dev.EventCreateShared()
	require.NoError(t, err)
	name, err := dev.IpcGetEventHandle(e)
	require.NoError(t, err)
	for _, of := range []*sim.Device{dev, second.(*sim.Device)} {
		other, err := of.IpcOpenEventHandle(name)
		require.NoError(t, err)
		assert.NotEqual(t, e, other)
		require.NoError(t, dev.Launch(s, time.Second))
		require.NoError(t, dev.EventRecord(e, s))
		passed, err := of.EventQuery(other)
		require.NoError(t, err)
		assert.False(t, passed)
		require.NoError(t, of.EventSynchronize(other))
		require.NoError(t, of.EventDestroy(other))
		require.NoError(t, dev.StreamSynchronize(s), "the clocks are apart")
	}
	passed, err := dev.EventQuery(e)
	require.NoError(t, err)
	assert.True(t, passed, "the other name was destroyed, not the event")
	_, err = dev.IpcGetEventHandle(recorded(t, dev, s))
	require.ErrorIs(t, err, cudadrv.InvalidHandle)
	_, err = dev.IpcGetEventHandle(1)
	require.ErrorIs(t, err, cudadrv.InvalidHandle)
	require.NoError(t, dev.EventDestroy(e))
	for _, gone := range []cudadrv.EventDescriptor{name, {}} {
		_, err = dev.IpcOpenEventHandle(gone)
		require.ErrorIs(t, err, cudadrv.InvalidHandle)
	}
	_, foreign := start(t, sim.Config{})
	_, err = foreign.IpcOpenEventHandle(name)
	require.ErrorIs(t, err, cudadrv.InvalidHandle, "another Driver")
}
