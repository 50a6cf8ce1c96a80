//go:build linux && (amd64 || arm64) && !gpu

package fakecuda_test

import (
	"runtime"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// life makes the calls of an allocator on a thread, fills its memory with value and checks every byte.
func (d *driver) life(context uintptr, value byte) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const bytes = 64 << 10
	s, p, e := uintptr(0), uintptr(0), uintptr(0)
	expect := func(name string, arguments ...uintptr) {
		result := d.result(name, arguments...)
		assert.Zero(d, int(result), "%s: %v", name, result)
	}
	expect("cuCtxSetCurrent", context)
	p, s, e = d.plain(bytes), d.stream(), d.event()
	expect("cuMemsetD8Async", p, uintptr(value), bytes, s)
	expect("cuEventRecord", e, s)
	expect("cuStreamWaitEvent", 0, e, 0)
	expect("cuEventSynchronize", e)
	assert.Equal(d, pattern(value, bytes), d.bytes(p, bytes))
	at := d.made("cuMemAddressReserve", granuleBytes, 0, 0, 0)
	h := d.made("cuMemCreate", granuleBytes, uintptr(unsafe.Pointer(prop(0, 0))), 0)
	d.mapAt(at, granuleBytes, h)
	expect("cuMemsetD8Async", at, uintptr(value), bytes, s)
	expect("cuStreamSynchronize", s)
	assert.Equal(d, pattern(value, bytes), d.bytes(at, bytes))
	expect("cuMemUnmap", at, granuleBytes)
	expect("cuMemRelease", h)
	expect("cuMemAddressFree", at, granuleBytes)
	expect("cuEventDestroy_v2", e)
	expect("cuStreamDestroy_v2", s)
	expect("cuMemFree_v2", p)
}
