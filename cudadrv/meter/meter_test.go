package meter_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/leaks"
)

const granule = sim.DefaultGranularityBytes

func TestMain(m *testing.M) { leaks.Main(m) }

// metered is a driver whose devices are metered.
type metered struct{ cudadrv.Driver }

func (m metered) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := m.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return meter.New(dev), nil
}

// plain hides that a device is modelled.
type plain struct{ cudadrv.Device }

func TestConformance(t *testing.T) {
	for _, config := range []sim.Config{{}, {Bytes: runtime.GOOS == "linux", TimedKernels: true}} {
		drivertest.Run(t, func(*testing.T) cudadrv.Driver { return metered{sim.New(config)} })
	}
}

func open(t *testing.T, config sim.Config) (*sim.Driver, cudadrv.Device) {
	t.Helper()
	drv := sim.New(config)
	dev, err := drv.Open(0)
	require.NoError(t, err)
	return drv, dev
}

func TestModelledTimeByCall(t *testing.T) {
	drv, dev := open(t, sim.Config{})
	m := meter.New(dev)
	assert.True(t, m.Modelled())
	assert.Zero(t, m.Calls())
	assert.Zero(t, m.Time(), "what was spent before is not ours")
	assert.Empty(t, m.ByCall())

	for range 2 {
		_, err := m.MemCreate(granule)
		require.NoError(t, err)
	}
	_, err := m.MemCreate(1)
	require.Error(t, err)
	_, err = drv.Device(0).MemCreate(granule) // past the meter
	require.NoError(t, err)
	_, err = m.EventCreate()
	require.NoError(t, err)

	assert.EqualValues(t, 4, m.Calls())
	assert.Equal(t, []meter.CallStats{
		{Func: "cuMemCreate", Calls: 3, Failures: 1, Time: 2 * 5614},
		{Func: "cuEventCreate", Calls: 1, Time: 184},
	}, m.ByCall())
	assert.Equal(t, time.Duration(2*5614+184), m.Time())
}

func TestWallClockTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drv, dev := open(t, sim.Config{Clock: sim.Running})
		m := meter.New(plain{dev})
		assert.False(t, m.Modelled())
		require.NoError(t, drv.Device(0).Launch(0, time.Second))
		require.NoError(t, m.CtxSynchronize())
		_, err := m.EventCreate()
		require.NoError(t, err)
		assert.Equal(t, []meter.CallStats{
			{Func: "cuCtxSynchronize", Calls: 1, Time: time.Second},
			{Func: "cuEventCreate", Calls: 1},
		}, m.ByCall())
		assert.Equal(t, time.Second, m.Time())
	})
}

// Each nanosecond of modelled time is counted once, with any overlap of calls.
func TestModelledTimeOfOverlappingCallsIsCountedOnce(t *testing.T) {
	drv, dev := open(t, sim.Config{})
	start := drv.Device(0).ModelledTime()
	m := meter.New(dev)
	const goroutines, rounds = 8, 500
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range rounds {
				h, err := m.MemCreate(granule)
				if !assert.NoError(t, err) {
					return
				}
				assert.NoError(t, m.MemRelease(h))
			}
		})
	}
	all.Wait()
	assert.Equal(t, drv.Device(0).ModelledTime()-start, m.Time())
	assert.EqualValues(t, goroutines*rounds*2, m.Calls())
	sum := time.Duration(0)
	for _, f := range m.ByCall() {
		sum += f.Time
		assert.EqualValues(t, goroutines*rounds, f.Calls, f.Func)
	}
	assert.Equal(t, m.Time(), sum)
}

func TestCountingDoesNotAllocate(t *testing.T) {
	_, dev := open(t, sim.Config{})
	for _, m := range []*meter.Device{meter.New(dev), meter.New(plain{dev})} {
		s, err := m.StreamCreate()
		require.NoError(t, err)
		e, err := m.EventCreate()
		require.NoError(t, err)
		p, err := m.MemAlloc(granule)
		require.NoError(t, err)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			_ = m.EventRecord(e, s)
			_, _ = m.EventQuery(e)
			_ = m.StreamWaitEvent(s, e)
			_, _ = m.StreamQuery(s)
			_, _, _ = m.MemGetInfo()
			_ = m.MemsetD8Async(p, 0, granule, s)
			_ = m.MemcpyDtoDAsync(p, p, granule, s)
			_ = m.EventSynchronize(e)
			_ = m.CtxSynchronize()
			_, _ = m.Calls(), m.Time()
		}))
	}
}
