package sim_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
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

// Streams, events, modules and graphs that are made, used and destroyed at the same time are each caller's own.
func TestManyGoroutinesMakeObjects(t *testing.T) {
	_, dev := start(t, sim.Config{})
	before := dev.Objects()
	together.Run(4, func(int) {
		for range 300 {
			s, err := dev.StreamCreateBlocking()
			assert.NoError(t, err)
			m, err := dev.ModuleLoadData([]byte(".version 7.0\n.target sm_70\n.entry step() { ret; }"))
			assert.NoError(t, err)
			f, err := dev.ModuleGetFunction(m, "step")
			assert.NoError(t, err)
			assert.NoError(t, dev.StreamBeginCapture(s, cudadrv.CaptureRelaxed))
			assert.NoError(t, dev.LaunchKernel(f, oneThread, nil, s))
			g, err := dev.StreamEndCapture(s)
			assert.NoError(t, err)
			x, err := dev.GraphInstantiate(g)
			assert.NoError(t, err)
			nodes, err := dev.GraphGetNodes(g)
			assert.NoError(t, err)
			assert.Len(t, nodes, 1)
			assert.NoError(t, errors.Join(dev.GraphUpload(x, s), dev.GraphLaunch(x, s), dev.GraphExecUpdate(x, g), dev.GraphDestroy(g)))
			e, err := dev.EventCreate()
			assert.NoError(t, errors.Join(err, dev.EventRecord(e, s), dev.StreamSynchronize(s)))
			assert.NoError(t, errors.Join(dev.EventDestroy(e), dev.GraphExecDestroy(x), dev.ModuleUnload(m), dev.StreamDestroy(s)))
		}
	})
	assert.Equal(t, before, dev.Objects())
	require.NoError(t, dev.Audit())
	require.NoError(t, dev.Close())
}
