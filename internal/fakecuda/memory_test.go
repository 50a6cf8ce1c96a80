//go:build linux && (amd64 || arm64) && !gpu

package fakecuda_test

import (
	"bytes"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// mapping reserves, makes and maps a handle that is accessible.
func (d *driver) mapping(bytes uintptr, handleTypes uint32) (p, h uintptr) {
	d.Helper()
	p = d.made("cuMemAddressReserve", bytes, 0, 0, 0)
	h = d.made("cuMemCreate", bytes, uintptr(unsafe.Pointer(prop(0, handleTypes))), 0)
	d.mapAt(p, bytes, h)
	return p, h
}

func (d *driver) mapAt(p, bytes, h uintptr) {
	d.Helper()
	d.ok("cuMemMap", p, bytes, 0, h, 0)
	d.ok("cuMemSetAccess", p, bytes, uintptr(unsafe.Pointer(access(3))), 1)
}

func pattern(value byte, length int) []byte { return bytes.Repeat([]byte{value}, length) }

func TestBytesFollowHandles(t *testing.T) {
	d := start(t)
	p, h := d.mapping(granuleBytes, 0)
	d.ok("cuMemsetD8_v2", p, 0x5a, granuleBytes)
	other := d.made("cuMemAddressReserve", 2*granuleBytes, 0, 0, 0)
	d.mapAt(other+granuleBytes, granuleBytes, h)
	d.ok("cuMemUnmap", p, granuleBytes)
	assert.Equal(t, pattern(0x5a, granuleBytes), d.bytes(other+granuleBytes, granuleBytes))

	// In two places it is the same memory.
	d.mapAt(other, granuleBytes, h)
	d.ok("cuMemsetD32_v2", other+8, 0x01020304, 2)
	assert.Equal(t, []byte{0x5a, 4, 3, 2, 1, 4, 3, 2, 1, 0x5a}, d.bytes(other+granuleBytes+7, 10))
	d.ok("cuMemUnmap", other, 2*granuleBytes)
	d.refused(cudadrv.InvalidValue, "cuMemcpyDtoH_v2", uintptr(unsafe.Pointer(&[1]byte{})), other, 1)
	d.ok("cuMemRelease", h)

	// New memory is another.
	h = d.made("cuMemCreate", granuleBytes, uintptr(unsafe.Pointer(prop(0, 0))), 0)
	d.mapAt(other, granuleBytes, h)
	assert.Equal(t, pattern(0, 64), d.bytes(other, 64))
}

func TestSharedHandle(t *testing.T) {
	d := start(t)
	freeBytes := d.freeBytes()
	p, h := d.mapping(granuleBytes, 1)
	d.ok("cuMemsetD8_v2", p, 7, granuleBytes)
	var fd int32
	d.ok("cuMemExportToShareableHandle", uintptr(unsafe.Pointer(&fd)), h, 1, 0)

	// The descriptor is a file of that size with those bytes, as another process sees it.
	file := os.NewFile(uintptr(fd), "handle")
	view, err := syscall.Mmap(int(fd), 0, granuleBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	require.NoError(t, err)
	assert.Equal(t, pattern(7, granuleBytes), view)
	view[5] = 9
	assert.Equal(t, []byte{7, 9, 7}, d.bytes(p+4, 3))
	require.NoError(t, syscall.Munmap(view))

	imported := d.made("cuMemImportFromShareableHandle", uintptr(fd), 1)
	require.NoError(t, file.Close())
	assert.Equal(t, freeBytes-granuleBytes, d.freeBytes(), "it is no new memory")
	at := d.made("cuMemAddressReserve", granuleBytes, 0, 0, 0)
	d.mapAt(at, granuleBytes, imported)
	assert.Equal(t, []byte{7, 9, 7}, d.bytes(at+4, 3))
	for _, handle := range []uintptr{h, imported} {
		d.ok("cuMemRelease", handle)
	}
	d.ok("cuMemUnmap", p, granuleBytes)
	assert.Equal(t, freeBytes-granuleBytes, d.freeBytes(), "the imported one is still mapped")
	d.ok("cuMemUnmap", at, granuleBytes)
	assert.Equal(t, freeBytes, d.freeBytes())
}

func TestCapacity(t *testing.T) {
	d := start(t)
	d.value("fakecuda_set_capacity", 0, 8*granuleBytes)
	assert.Equal(t, 8*granuleBytes, d.freeBytes())
	p := d.plain(1)
	assert.Equal(t, 8*granuleBytes-512, d.freeBytes())
	d.refused(cudadrv.OutOfMemory, "cuMemAlloc_v2", uintptr(unsafe.Pointer(&p)), 8*granuleBytes)
	d.ok("cuMemFree_v2", p)
	d.plain(8 * granuleBytes)
	assert.Zero(t, d.freeBytes())
	properties := d.address(prop(0, 0))
	d.refused(cudadrv.OutOfMemory, "cuMemCreate", uintptr(unsafe.Pointer(&p)), granuleBytes, properties, 0)
	d.value("fakecuda_set_capacity", 0, 16*granuleBytes)
	d.value("fakecuda_occupy", 0, 7*granuleBytes)
	d.made("cuMemCreate", granuleBytes, properties, 0)
	d.refused(cudadrv.OutOfMemory, "cuMemAlloc_v2", uintptr(unsafe.Pointer(&p)), 1)
	d.value("fakecuda_occupy", 0, 100*granuleBytes)
	assert.Zero(t, d.freeBytes())
}

// A device far larger than this machine's memory: untouched memory costs nothing.
func TestLargeDevice(t *testing.T) {
	d := start(t)
	d.value("fakecuda_set_capacity", 0, 140<<30)
	p, h := d.mapping(64<<30, 0)
	plain := d.plain(64 << 30)
	d.ok("cuMemsetD8_v2", p+63<<30, 3, 16)
	assert.Equal(t, pattern(3, 16), d.bytes(p+63<<30, 16))
	d.ok("cuMemFree_v2", plain)
	d.ok("cuMemUnmap", p, 64<<30)
	d.ok("cuMemRelease", h)
}

func TestAbilities(t *testing.T) {
	d := start(t)
	const virtualMemory = 102
	d.value("fakecuda_set_attribute", 0, virtualMemory, 0)
	var out uintptr
	d.refused(cudadrv.NotSupported, "cuMemAddressReserve", uintptr(unsafe.Pointer(&out)), granuleBytes, 0, 0, 0)
	d.ok("cuDeviceGetAttribute", uintptr(unsafe.Pointer(&out)), virtualMemory, 0)
	assert.Zero(t, out)
}

// Access is set over holes between mappings, and unmapped addresses stay inaccessible.
func TestAccessOverHoles(t *testing.T) {
	d := start(t)
	p := d.made("cuMemAddressReserve", 3*granuleBytes, 0, 0, 0)
	h := d.made("cuMemCreate", granuleBytes, uintptr(unsafe.Pointer(prop(0, 0))), 0)
	both := d.address(access(3))
	d.ok("cuMemMap", p, granuleBytes, 0, h, 0)
	d.ok("cuMemMap", p+2*granuleBytes, granuleBytes, 0, h, 0)
	d.ok("cuMemSetAccess", p, 3*granuleBytes, both, 1)
	d.refused(cudadrv.InvalidValue, "cuMemSetAccess", p, 4*granuleBytes, both, 1)
	d.ok("cuMemsetD8_v2", p, 7, granuleBytes)
	assert.Equal(t, pattern(7, 8), d.bytes(p+2*granuleBytes, 8))
	d.refused(cudadrv.InvalidValue, "cuMemsetD8_v2", p, 7, granuleBytes+1)
	d.ok("cuMemUnmap", p, 4*granuleBytes)
	assert.Zero(t, d.live(kindMappings))
}
