package sim_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/together"
)

// Views that open and close at the same time count: the GPU's memory lasts as long as one of them, and no longer.
func TestManyGoroutinesOpenAndClose(t *testing.T) {
	drv, kept := start(t, sim.Config{Bytes: true})
	p, err := kept.MemAlloc(granule)
	require.NoError(t, err)
	together.Run(4, func(int) {
		for range 50 {
			dev, err := drv.Open(0)
			if !assert.NoError(t, err) {
				return
			}
			assert.NoError(t, dev.MemsetD8Async(p, 1, granule, 0))
			assert.NoError(t, dev.Close())
		}
	})
	require.NoError(t, kept.MemFree(p))
	require.NoError(t, kept.Audit())
	require.NoError(t, kept.Close())
	_, _, err = kept.MemGetInfo()
	require.Error(t, err)
	assert.Empty(t, drv.Device(0).Objects())
}

// Host memory that is page-locked, copied and given back at the same time is each caller's own.
func TestManyGoroutinesLockHostMemory(t *testing.T) {
	_, dev := start(t, sim.Config{Bytes: true})
	p, err := dev.MemAlloc(granule)
	require.NoError(t, err)
	together.Run(4, func(int) {
		own := make([]byte, 4096)
		for range 50 {
			assert.NoError(t, dev.MemHostRegister(own))
			_, err := dev.MemHostGetDevicePointer(own)
			assert.NoError(t, err)
			b, err := dev.MemHostAlloc(4096)
			assert.NoError(t, err)
			assert.NoError(t, dev.MemcpyDtoHAsync(own, p, 0))
			assert.NoError(t, dev.MemFreeHost(b))
			assert.NoError(t, dev.MemHostUnregister(own))
		}
	})
	require.NoError(t, dev.MemFree(p))
	require.NoError(t, dev.Audit())
	require.NoError(t, dev.Close())
}
