//go:build gpu && linux && (amd64 || arm64)

package acceptance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// On a GPU: layers of 256 MiB that a second stream copies out, freed after the wait for the copy,
// take the memory of one, and no copy has bytes of a later layer.
func TestHardwareMemoryFreedBehindAWait(t *testing.T) {
	driver := dynamic.New(dynamic.Config{})
	gpu, err := driver.Open(0)
	require.NoError(t, err)
	defer func() { require.NoError(t, gpu.Close()) }()
	const layers, layerBytes = 48, 256 * mib
	copies, err := gpu.MemAlloc(layers * layerBytes)
	require.NoError(t, err)
	defer func() { require.NoError(t, gpu.MemFree(copies)) }()
	for _, waits := range []bool{false, true} {
		device, err := vram.Open(vram.Config{Driver: driver})
		require.NoError(t, err)
		computes, out := streamOf(t, device), streamOf(t, device)
		require.NoError(t, gpu.MemsetD8Async(copies, 0xff, layers*layerBytes, out.Handle())) // the host is ahead
		for layer := range layers {
			x := must(t, computes, layerBytes)
			require.NoError(t, gpu.MemsetD8Async(x.Ptr(), byte(layer), layerBytes, computes.Handle()))
			u, err := x.Use(out)
			require.NoError(t, err)
			require.NoError(t, out.WaitStream(computes))
			require.NoError(t, gpu.MemcpyDtoDAsync(copies+vram.Ptr(int64(layer)*layerBytes), x.Ptr(), layerBytes, out.Handle()))
			require.NoError(t, u.Done())
			if waits {
				require.NoError(t, computes.WaitStream(out))
			}
			freeAll(t, x)
		}
		require.NoError(t, gpu.StreamSynchronize(out.Handle()))
		peak := device.Stats().PeakReservedBytes
		t.Logf("waits %v: peak %d MiB", waits, peak>>20)
		if waits {
			assert.EqualValues(t, layerBytes, peak)
		}
		require.NoError(t, device.Close())
		checkLayers(t, gpu, copies, layers, layerBytes)
	}
}

// checkLayers reads each layer's copy, whose every byte is the layer's number.
func checkLayers(t *testing.T, gpu cudadrv.Device, copies vram.Ptr, layers int, layerBytes int64) {
	t.Helper()
	host, ok := gpu.(cudadrv.HostMemory)
	require.True(t, ok)
	s, err := gpu.StreamCreate()
	require.NoError(t, err)
	bytes, err := host.MemHostAlloc(layerBytes)
	require.NoError(t, err)
	for layer := range layers {
		require.NoError(t, host.MemcpyDtoHAsync(bytes, copies+vram.Ptr(int64(layer)*layerBytes), s))
		require.NoError(t, gpu.StreamSynchronize(s))
		for at, b := range bytes {
			if b != byte(layer) {
				t.Fatalf("layer %d has byte %d at %d", layer, b, at)
			}
		}
	}
	require.NoError(t, host.MemFreeHost(bytes))
	require.NoError(t, gpu.StreamDestroy(s))
}

// On a GPU: a device releases free memory for another one of the process.
func TestHardwareNeighbours(t *testing.T) {
	driver := dynamic.New(dynamic.Config{})
	gpu, err := driver.Open(0)
	require.NoError(t, err)
	defer func() { require.NoError(t, gpu.Close()) }()
	free, _, err := gpu.MemGetInfo()
	require.NoError(t, err)
	one, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	other, err := vram.Open(vram.Config{Driver: dynamic.New(dynamic.Config{})})
	require.NoError(t, err)
	freeAll(t, must(t, streamOf(t, one), free/10*9))
	freeAll(t, must(t, streamOf(t, other), free/2))
	assert.GreaterOrEqual(t, other.Stats().NeighbourBytes, free/10*3)
	t.Logf("%d MiB held by one, %d by the other, %d released", one.Stats().ReservedBytes>>20, other.Stats().ReservedBytes>>20, other.Stats().NeighbourBytes>>20)
	require.NoError(t, other.Close())
	require.NoError(t, one.Close())
}
