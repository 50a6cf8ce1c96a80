//go:build linux && (amd64 || arm64) && !gpu

package fakecuda_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

func TestBeforeStarting(t *testing.T) {
	d := open(t)
	var count int32
	d.refused(cudadrv.NotInitialized, "cuDeviceGetCount", uintptr(unsafe.Pointer(&count)))
	d.refused(cudadrv.InvalidValue, "cuInit", 1)
	d.value("fakecuda_set_devices", 0)
	d.refused(cudadrv.NoDevice, "cuInit", 0)
	d.value("fakecuda_set_devices", 3)
	d.ok("cuInit", 0)
	d.ok("cuDeviceGetCount", uintptr(unsafe.Pointer(&count)))
	assert.EqualValues(t, 3, count)
	d.refused(cudadrv.InvalidDevice, "cuDeviceGet", uintptr(unsafe.Pointer(&count)), 3)
	d.ok("cuDriverGetVersion", uintptr(unsafe.Pointer(&count)))
	assert.EqualValues(t, 13000, count)
	d.value("fakecuda_set_version", 11040)
	d.ok("cuDriverGetVersion", uintptr(unsafe.Pointer(&count)))
	assert.EqualValues(t, 11040, count)
}

func TestLive(t *testing.T) {
	d := start(t)
	assert.Equal(t, 1, d.live(-1), "the primary context")
	p, s, e := d.plain(5), d.stream(), d.event()
	assert.Equal(t, 4, d.live(-1))
	assert.Equal(t, 1, d.live(kindAllocations))
	text := make([]byte, 200)
	length := d.count("fakecuda_report", uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
	assert.Equal(t, "contexts 1, streams 1, events 1, allocations 1", string(text[:length]))
	d.ok("cuMemFree_v2", p)
	d.ok("cuStreamDestroy_v2", s)
	d.ok("cuEventDestroy_v2", e)
	assert.Equal(t, 1, d.live(-1))
	assert.Zero(t, d.count("fakecuda_lost"))
	d.plain(5)
	d.ok("cuDevicePrimaryCtxRelease_v2", 0)
	assert.Zero(t, d.live(-1))
	assert.Equal(t, 1, d.count("fakecuda_lost"))
}
