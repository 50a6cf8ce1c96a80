package sim_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

const ms = time.Millisecond

// start makes a driver and opens its first device.
func start(t *testing.T, config sim.Config) (*sim.Driver, *sim.Device) {
	t.Helper()
	drv := sim.New(config)
	dev, err := drv.Open(0)
	require.NoError(t, err)
	require.IsType(t, &sim.Device{}, dev)
	return drv, dev.(*sim.Device)
}

func newStream(t *testing.T, dev *sim.Device) cudadrv.Stream {
	t.Helper()
	s, err := dev.StreamCreate()
	require.NoError(t, err)
	return s
}

func recorded(t *testing.T, dev *sim.Device, s cudadrv.Stream) cudadrv.Event {
	t.Helper()
	e, err := dev.EventCreate()
	require.NoError(t, err)
	require.NoError(t, dev.EventRecord(e, s))
	return e
}

func passed(t *testing.T, dev *sim.Device, e cudadrv.Event) bool {
	t.Helper()
	done, err := dev.EventQuery(e)
	require.NoError(t, err)
	return done
}

func idle(t *testing.T, dev *sim.Device, s cudadrv.Stream) bool {
	t.Helper()
	done, err := dev.StreamQuery(s)
	require.NoError(t, err)
	return done
}

func TestWorkOfAStreamQueuesUp(t *testing.T) {
	_, dev := start(t, sim.Config{})
	s := newStream(t, dev)
	require.NoError(t, dev.Launch(s, 3*ms))
	first := recorded(t, dev, s)
	require.NoError(t, dev.Launch(s, 4*ms))
	second := recorded(t, dev, s)

	dev.Advance(3*ms - 1)
	assert.False(t, passed(t, dev, first))
	dev.Advance(1)
	assert.True(t, passed(t, dev, first))
	assert.False(t, passed(t, dev, second))
	dev.AdvanceTo(7 * ms)
	assert.True(t, passed(t, dev, second))
	assert.True(t, idle(t, dev, s))

	// Work queued on an idle stream begins now, not when the stream fell idle.
	dev.AdvanceTo(10 * ms)
	require.NoError(t, dev.Launch(s, ms))
	assert.False(t, idle(t, dev, s))
	dev.AdvanceTo(11 * ms)
	assert.True(t, idle(t, dev, s))
}

func TestTimeNeverGoesBack(t *testing.T) {
	_, dev := start(t, sim.Config{})
	dev.AdvanceTo(5 * ms)
	dev.AdvanceTo(3 * ms)
	dev.Advance(-ms)
	assert.Equal(t, 5*ms, dev.Now())
	dev.Advance(1<<63 - 1)
	assert.Equal(t, time.Duration(1<<63-1), dev.Now())
}

func TestOccupyDoesNotAddUp(t *testing.T) {
	_, dev := start(t, sim.Config{})
	s := newStream(t, dev)
	for range 3 {
		require.NoError(t, dev.Occupy(s, 5*ms))
	}
	require.NoError(t, dev.Occupy(s, 2*ms))
	dev.AdvanceTo(5*ms - 1)
	assert.False(t, idle(t, dev, s))
	dev.AdvanceTo(5 * ms)
	assert.True(t, idle(t, dev, s))
}

// Occupied time of the legacy default stream begins after the work of blocking streams, and of these after its.
func TestOccupyIsInTheOrderOfTheLegacyStream(t *testing.T) {
	_, dev := start(t, sim.Config{})
	blocking, err := dev.StreamCreateBlocking()
	require.NoError(t, err)
	for _, order := range [][2]cudadrv.Stream{{blocking, 0}, {0, blocking}} {
		require.NoError(t, dev.Launch(order[0], 5*ms))
		require.NoError(t, dev.Occupy(order[1], ms))
		dev.Advance(2 * ms)
		assert.False(t, idle(t, dev, order[1]))
		dev.Advance(3 * ms)
		assert.True(t, idle(t, dev, order[1]))
	}
}

func TestLaunchMistakes(t *testing.T) {
	drv, dev := start(t, sim.Config{})
	for _, queue := range []func(cudadrv.Stream, time.Duration) error{dev.Launch, dev.Occupy} {
		require.ErrorIs(t, queue(0, -1), cudadrv.InvalidValue)
		require.ErrorIs(t, queue(77, 1), cudadrv.InvalidHandle)
	}
	require.NoError(t, dev.Close())
	require.ErrorIs(t, dev.Launch(0, 1), cudadrv.InvalidContext)
	require.ErrorIs(t, drv.Device(0).Occupy(0, 1), cudadrv.InvalidContext)
}

func TestStreamsAreIndependentAlsoOfTheDefaultStream(t *testing.T) {
	_, dev := start(t, sim.Config{})
	s, other := newStream(t, dev), newStream(t, dev)
	require.NoError(t, dev.Launch(0, 5*ms))
	require.NoError(t, dev.Launch(s, ms))
	assert.True(t, idle(t, dev, other))
	dev.Advance(ms)
	assert.True(t, idle(t, dev, s), "a non-blocking stream does not wait for the default stream")
	assert.False(t, idle(t, dev, 0))
}

func TestStreamWaitEvent(t *testing.T) {
	_, dev := start(t, sim.Config{})
	first, second := newStream(t, dev), newStream(t, dev)
	require.NoError(t, dev.Launch(first, 5*ms))
	e := recorded(t, dev, first)
	require.NoError(t, dev.StreamWaitEvent(second, e))
	require.NoError(t, dev.Launch(first, 5*ms)) // after the event: not waited for
	require.NoError(t, dev.EventDestroy(e))     // the wait is queued already
	require.NoError(t, dev.Launch(second, 2*ms))
	dev.AdvanceTo(7*ms - 1)
	assert.False(t, idle(t, dev, second))
	dev.AdvanceTo(7 * ms)
	assert.True(t, idle(t, dev, second))
}

func TestRecordingAgainReplacesWhatWasCaptured(t *testing.T) {
	_, dev := start(t, sim.Config{})
	s := newStream(t, dev)
	e := recorded(t, dev, s)
	assert.True(t, passed(t, dev, e))
	require.NoError(t, dev.Launch(s, ms))
	assert.True(t, passed(t, dev, e), "later work is not captured")
	require.NoError(t, dev.EventRecord(e, s))
	assert.False(t, passed(t, dev, e))
}

func TestWaitingMovesTheSteppedClock(t *testing.T) {
	_, dev := start(t, sim.Config{})
	s, other := newStream(t, dev), newStream(t, dev)
	p, err := dev.MemAlloc(1)
	require.NoError(t, err)
	require.NoError(t, dev.Launch(s, 2*ms))
	e := recorded(t, dev, s)
	require.NoError(t, dev.Launch(s, 2*ms))
	require.NoError(t, dev.Launch(other, 6*ms))

	require.NoError(t, dev.EventSynchronize(e))
	assert.Equal(t, 2*ms, dev.Now())
	require.NoError(t, dev.StreamSynchronize(s))
	assert.Equal(t, 4*ms, dev.Now())
	require.NoError(t, dev.MemFree(p))
	assert.Equal(t, 6*ms, dev.Now(), "MemFree waits for the whole device")
	require.NoError(t, dev.Launch(0, ms))
	require.NoError(t, dev.CtxSynchronize())
	assert.Equal(t, 7*ms, dev.Now())
}

func TestFailedAndEmptyFreesDoNotWait(t *testing.T) {
	_, dev := start(t, sim.Config{})
	require.NoError(t, dev.Launch(0, ms))
	require.NoError(t, dev.MemFree(0))
	require.Error(t, dev.MemFree(512))
	assert.Zero(t, dev.Now())
}

func TestVirtualMemoryCallsDoNotWait(t *testing.T) {
	_, dev := start(t, sim.Config{})
	require.NoError(t, dev.Launch(0, ms))
	p, err := dev.MemAddressReserve(granule)
	require.NoError(t, err)
	h, err := dev.MemCreate(granule)
	require.NoError(t, err)
	require.NoError(t, dev.MemMap(p, granule, h))
	require.NoError(t, dev.MemSetAccess(p, granule))
	require.NoError(t, dev.MemUnmap(p, granule))
	require.NoError(t, dev.MemRelease(h))
	require.NoError(t, dev.MemAddressFree(p, granule))
	assert.Zero(t, dev.Now())
	assert.False(t, idle(t, dev, 0))
}

func TestWorkOfADestroyedStreamStillRuns(t *testing.T) {
	_, dev := start(t, sim.Config{})
	s := newStream(t, dev)
	require.NoError(t, dev.Launch(s, 3*ms))
	e := recorded(t, dev, s)
	require.NoError(t, dev.StreamDestroy(s))
	assert.False(t, passed(t, dev, e))
	require.NoError(t, dev.CtxSynchronize())
	assert.Equal(t, 3*ms, dev.Now())
	assert.True(t, passed(t, dev, e))
}

func TestWorkTakesTimeByItsBytes(t *testing.T) {
	_, dev := start(t, sim.Config{})
	p, err := dev.MemAlloc(1 << 30)
	require.NoError(t, err)
	took := func(queue func() error) time.Duration {
		before := dev.Now()
		require.NoError(t, queue())
		require.NoError(t, dev.CtxSynchronize())
		return dev.Now() - before
	}
	// Measured on an H200: 261 us and 4.9 us waited for memsets of 1 GiB and 4 KiB; copies at 2130 GB/s.
	assert.InDelta(t, 261e3, float64(took(func() error { return dev.MemsetD8Async(p, 0, 1<<30, 0) })), 5e3)
	assert.InDelta(t, 4.9e3, float64(took(func() error { return dev.MemsetD8Async(p, 0, 4096, 0) })), 0.2e3)
	assert.InDelta(t, 504e3, float64(took(func() error { return dev.MemcpyDtoDAsync(p, p, 1<<30, 0) })), 10e3)
	assert.Zero(t, took(func() error { return dev.MemsetD8Async(p, 0, 0, 0) }))
}

func TestRunningClockFollowsTheWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drv, dev := start(t, sim.Config{Clock: sim.Running})
		s := newStream(t, dev)
		p, err := dev.MemAlloc(1)
		require.NoError(t, err)
		began := time.Now()
		dev.Advance(time.Hour)
		dev.AdvanceTo(time.Hour)
		assert.Zero(t, dev.Now(), "nobody moves the running clock")

		require.NoError(t, dev.Launch(s, 5*ms))
		e := recorded(t, dev, s)
		assert.False(t, passed(t, dev, e))
		require.NoError(t, dev.EventSynchronize(e))
		assert.Equal(t, 5*ms, time.Since(began))
		assert.Equal(t, 5*ms, drv.Device(0).Now())
		assert.True(t, passed(t, dev, e))

		require.NoError(t, dev.Launch(0, 5*ms))
		assert.True(t, idle(t, dev, s))
		require.NoError(t, dev.MemFree(p))
		assert.Equal(t, 10*ms, time.Since(began))
	})
}

// A waiting call holds nobody up, and of two calls that give the same memory back one wins.
func TestRunningClockWaitsWithoutTheLock(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, dev *sim.Device) (end func() error){
		"cuMemFree": func(t *testing.T, dev *sim.Device) func() error {
			t.Helper()
			p, err := dev.MemAlloc(1)
			require.NoError(t, err)
			return func() error { return dev.MemFree(p) }
		},
		"cuMemFreeHost": func(t *testing.T, dev *sim.Device) func() error {
			t.Helper()
			b, err := dev.MemHostAlloc(1)
			require.NoError(t, err)
			return func() error { return dev.MemFreeHost(b) }
		},
		"cuMemHostUnregister": func(t *testing.T, dev *sim.Device) func() error {
			t.Helper()
			b := make([]byte, 1)
			require.NoError(t, dev.MemHostRegister(b))
			return func() error { return dev.MemHostUnregister(b) }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, dev := start(t, sim.Config{Clock: sim.Running, Bytes: name != "cuMemFree"})
			end := begin(t, dev)
			require.NoError(t, dev.Launch(0, 5*ms))
			freed := make(chan error, 2)
			for range 2 {
				go func() { freed <- end() }()
			}
			synctest.Wait()
			began := time.Now()
			_, err := dev.MemCreate(granule)
			require.NoError(t, err)
			assert.Zero(t, time.Since(began))
			first, second := <-freed, <-freed
			if first != nil {
				first, second = second, first
			}
			require.NoError(t, first, name)
			require.ErrorIs(t, second, cudadrv.InvalidValue, name)
			require.NoError(t, dev.Audit(), name)
			require.NoError(t, dev.Close())
		})
	}
}
