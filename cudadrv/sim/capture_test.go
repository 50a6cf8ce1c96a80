package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// captured begins a capture on a new stream, with an event that was recorded outside.
func captured(t *testing.T) (dev *sim.Device, s cudadrv.Stream, outside cudadrv.Event) {
	t.Helper()
	_, opened := start(t, sim.Config{})
	dev = opened
	s, err := dev.StreamCreate()
	require.NoError(t, err)
	outside, err = dev.EventCreate()
	require.NoError(t, err)
	require.NoError(t, dev.EventRecord(outside, s))
	require.NoError(t, dev.BeginCapture(s))
	return dev, s, outside
}

// Captured work takes time when the graph is launched, and not before.
func TestACaptureIsWorkOfItsGraph(t *testing.T) {
	dev, s, _ := captured(t)
	p, err := dev.MemAlloc(4096)
	require.NoError(t, err)
	e, err := dev.EventCreate()
	require.NoError(t, err)
	status, err := dev.StreamIsCapturing(s)
	require.NoError(t, err)
	assert.Equal(t, cudadrv.CaptureActive, status)
	require.NoError(t, dev.Launch(s, time.Second))
	require.NoError(t, dev.MemsetD8Async(p, 1, 4096, s))
	require.NoError(t, dev.EventRecord(e, s))
	assert.Zero(t, dev.Now())
	g, err := dev.EndCapture(s)
	require.NoError(t, err)
	_, err = dev.EventQuery(e)
	require.ErrorIs(t, err, cudadrv.InvalidValue)
	assert.Equal(t, []string{"cuLaunchKernel", "cuMemsetD8Async", "cuEventRecord"}, g.Calls())

	require.NoError(t, dev.StreamSynchronize(s))
	assert.Zero(t, dev.Now(), "nothing has run")
	require.NoError(t, dev.LaunchGraph(g, s))
	require.NoError(t, dev.EventRecord(e, s))
	require.NoError(t, dev.EventSynchronize(e), "recorded anew, outside")
	assert.Greater(t, dev.Now(), time.Second)
}

// Calls that cannot be captured are refused, and end the capture.
func TestWhatACaptureRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		call func(dev *sim.Device, s cudadrv.Stream, outside cudadrv.Event) error
		want cudadrv.Result
	}{
		"synchronise": {func(dev *sim.Device, s cudadrv.Stream, _ cudadrv.Event) error { return dev.StreamSynchronize(s) }, cudadrv.CaptureViolation},
		"query": {func(dev *sim.Device, s cudadrv.Stream, _ cudadrv.Event) error {
			_, err := dev.StreamQuery(s)
			return err
		}, cudadrv.CaptureViolation},
		"wait": {func(dev *sim.Device, s cudadrv.Stream, e cudadrv.Event) error { return dev.StreamWaitEvent(s, e) }, cudadrv.CaptureIsolation},
	} {
		t.Run(name, func(t *testing.T) {
			dev, s, outside := captured(t)
			require.ErrorIs(t, c.call(dev, s, outside), c.want)
			status, err := dev.StreamIsCapturing(s)
			require.NoError(t, err)
			assert.Equal(t, cudadrv.CaptureInvalidated, status)
			_, err = dev.EndCapture(s)
			require.ErrorIs(t, err, cudadrv.CaptureBroken)
			require.NoError(t, dev.StreamSynchronize(s))
		})
	}
	t.Run("synchronise the device", func(t *testing.T) {
		dev, s, _ := captured(t)
		all := []cudadrv.Stream{s}
		for range 3 {
			other := newStream(t, dev)
			require.NoError(t, dev.BeginCapture(other))
			all = append(all, other)
		}
		require.ErrorIs(t, dev.CtxSynchronize(), cudadrv.CaptureViolation)
		for _, one := range all {
			_, err := dev.EndCapture(one)
			require.ErrorIs(t, err, cudadrv.CaptureBroken)
		}
		require.NoError(t, dev.CtxSynchronize())
	})
	dev, s, _ := captured(t)
	require.ErrorIs(t, dev.BeginCapture(s), cudadrv.IllegalState)
	require.ErrorIs(t, dev.BeginCapture(0), cudadrv.CaptureViolation)
	require.ErrorIs(t, dev.BeginCapture(77), cudadrv.InvalidHandle)
	require.ErrorIs(t, dev.Occupy(s, time.Second), cudadrv.CaptureViolation)
	_, err := dev.EndCapture(0)
	require.ErrorIs(t, err, cudadrv.IllegalState)
	g, err := dev.EndCapture(s)
	require.NoError(t, err)
	require.ErrorIs(t, dev.LaunchGraph(g, 77), cudadrv.InvalidHandle)
}

// The work of a blocking stream that was destroyed is still before the default stream's.
func TestADestroyedBlockingStreamIsStillWaitedFor(t *testing.T) {
	_, dev := start(t, sim.Config{})
	s, err := dev.StreamCreateBlocking()
	require.NoError(t, err)
	require.NoError(t, dev.Launch(s, time.Second))
	require.NoError(t, dev.StreamDestroy(s))
	require.NoError(t, dev.Launch(1, time.Second))
	require.NoError(t, dev.StreamSynchronize(0))
	assert.Equal(t, 2*time.Second, dev.Now())
}

// The default stream's work is after the work of each blocking stream.
func TestTheDefaultStreamWaitsForAllBlockingOnes(t *testing.T) {
	for longest := range 3 {
		_, dev := start(t, sim.Config{})
		for i := range 3 {
			s, err := dev.StreamCreateBlocking()
			require.NoError(t, err)
			took := time.Second
			if i == longest {
				took = time.Hour
			}
			require.NoError(t, dev.Launch(s, took))
		}
		require.NoError(t, dev.Launch(0, time.Second))
		require.NoError(t, dev.StreamSynchronize(1))
		assert.Equal(t, time.Hour+time.Second, dev.Now())
	}
}

// A wait on the default stream is work of that stream: it waits for blocking streams, and their later work waits for it.
func TestAWaitOnTheDefaultStreamIsInItsOrder(t *testing.T) {
	_, dev := start(t, sim.Config{})
	first, err := dev.StreamCreateBlocking()
	require.NoError(t, err)
	second, err := dev.StreamCreateBlocking()
	require.NoError(t, err)
	apart, err := dev.StreamCreate()
	require.NoError(t, err)
	e, err := dev.EventCreate()
	require.NoError(t, err)
	require.NoError(t, dev.Launch(apart, time.Second))
	require.NoError(t, dev.EventRecord(e, apart))
	require.NoError(t, dev.Launch(first, 3*time.Second))
	require.NoError(t, dev.StreamWaitEvent(0, e))
	require.NoError(t, dev.Launch(second, time.Second))
	require.NoError(t, dev.StreamSynchronize(second))
	assert.Equal(t, 4*time.Second, dev.Now())
}

// A stream that is destroyed leaves its capture, which still ends for all others.
func TestADestroyedStreamLeavesItsCapture(t *testing.T) {
	dev, s, _ := captured(t)
	joined, gone := newStream(t, dev), newStream(t, dev)
	e := recorded(t, dev, s)
	for _, one := range []cudadrv.Stream{joined, gone} {
		require.NoError(t, dev.StreamWaitEvent(one, e))
	}
	require.NoError(t, dev.StreamDestroy(gone))
	require.NoError(t, dev.StreamWaitEvent(s, recorded(t, dev, joined)))
	_, err := dev.EndCapture(s)
	require.NoError(t, err)
	for _, one := range []cudadrv.Stream{s, joined} {
		status, err := dev.StreamIsCapturing(one)
		require.NoError(t, err)
		assert.Equal(t, cudadrv.CaptureNone, status)
	}
}

// Work that a capture forbids takes no time.
func TestRefusedWorkTakesNoTime(t *testing.T) {
	l := load(t, sim.Config{})
	s, err := l.StreamCreateBlocking()
	require.NoError(t, err)
	p, err := l.MemAlloc(granule)
	require.NoError(t, err)
	require.NoError(t, l.BeginCapture(s))
	require.ErrorIs(t, l.LaunchKernel(l.empty, shape(1), nil, 0), cudadrv.CaptureImplicit)
	require.ErrorIs(t, l.MemsetD8Async(p, 0, granule, 0), cudadrv.CaptureImplicit)
	require.ErrorIs(t, l.MemcpyDtoDAsync(p, p+cudadrv.Ptr(granule/2), granule/2, 0), cudadrv.CaptureImplicit)
	assert.Zero(t, l.Drained())
}
