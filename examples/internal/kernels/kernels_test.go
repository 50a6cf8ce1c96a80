package kernels_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/internal/kernels"
)

// plain hides the methods that only a simulated device has.
type plain struct{ cudadrv.Device }

func open(t *testing.T, clock sim.Clock) (*sim.Driver, cudadrv.Device) {
	t.Helper()
	driver := sim.New(sim.Config{Clock: clock})
	device, err := driver.Open(0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	return driver, device
}

func TestASimulatedDeviceHasItsOwnKernels(t *testing.T) {
	driver, device := open(t, sim.Stepped)
	k, err := kernels.Open(device)
	require.NoError(t, err)
	require.NoError(t, k.Launch(0, time.Second))
	require.NoError(t, device.StreamSynchronize(0))
	assert.GreaterOrEqual(t, k.Now(), time.Second)
	assert.Zero(t, driver.Device(0).Counts()["cuMemAlloc"])
	require.NoError(t, k.Close())
}

// On other devices a kernel is memsets of the same total duration, and nothing leaks. In virtual time they take exactly the
// simulated device's time.
func TestADeviceWithoutKernelsGetsMemsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		driver, device := open(t, sim.Running)
		freeBytes, _, err := device.MemGetInfo()
		require.NoError(t, err)
		k, err := kernels.Open(plain{device})
		require.NoError(t, err)
		s, err := device.StreamCreate()
		require.NoError(t, err)
		start := time.Now()
		require.NoError(t, k.Launch(s, 20*time.Millisecond))
		over, err := device.StreamQuery(s)
		require.NoError(t, err)
		assert.False(t, over)
		require.NoError(t, device.StreamSynchronize(s))
		assert.InDelta(t, 20, time.Since(start).Seconds()*1000, 0.1)
		assert.Positive(t, k.Now())
		require.NoError(t, k.Launch(s, 0))
		require.NoError(t, k.Close())
		require.NoError(t, device.StreamDestroy(s))
		after, _, err := device.MemGetInfo()
		require.NoError(t, err)
		assert.Equal(t, freeBytes, after)
		assert.Equal(t, driver.Device(0).Counts()["cuMemAlloc"], driver.Device(0).Counts()["cuMemFree"])
	})
}

func TestNoRoomForTheScratchBuffer(t *testing.T) {
	driver, device := open(t, sim.Stepped)
	driver.Device(0).SetCapacity(1 << 20)
	_, err := kernels.Open(plain{device})
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
}
