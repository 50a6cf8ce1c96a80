//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/go-vram/vram/cudadrv"
)

// questions is a driver that is asked things in order.
type questions struct {
	*driver
	context uintptr     // the primary one, in the parts that want it
	block   *[4096]byte // where calls write
	start   uintptr     // its address
}

func newQuestions(t *testing.T) *questions {
	t.Helper()
	q := &questions{driver: open(t), block: new([4096]byte)}
	q.start = q.address(q.block)
	return q
}

// out is memory for a call to write to.
func (q *questions) out() uintptr { return q.start }

// ask makes a call and records its result. The call's outputs are 0 before: a refused call may leave them.
//
//go:uintptrescapes
func (q *questions) ask(what, name string, arguments ...uintptr) {
	q.Helper()
	q.asked(what+", "+name, name, arguments...)
}

// asked is ask, and says whether the call succeeded.
//
//go:uintptrescapes
func (q *questions) asked(key, name string, arguments ...uintptr) bool {
	q.Helper()
	if answer, left := q.journal.leftOut(key); left {
		q.journal.answer(key, answer)
		return false
	}
	if slices.Contains(arguments, q.out()) {
		clear(q.block[:16])
	}
	result := q.result(name, arguments...)
	answer := q.nameOf(result)
	if q.journal.lost != "" {
		answer = q.journal.lost
	}
	q.journal.answer(key, answer)
	return result == 0
}

// nameOf is the driver's own name of a result.
func (q *questions) nameOf(r cudadrv.Result) string {
	name := new(*byte)
	failed, _, _ := purego.SyscallN(q.symbol("cuGetErrorName"), uintptr(r), q.address(name))
	if failed != 0 || *name == nil {
		return r.String()
	}
	length := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(*name), length)) != 0 {
		length++
	}
	return unsafe.String(*name, length)
}

// answer records an answer that is not a call's result.
func (q *questions) answer(what, answer string) {
	if left, ok := q.journal.leftOut(what); ok {
		answer = left
	}
	q.journal.answer(what, answer)
}

func (q *questions) int32() int32 { return int32(binary.NativeEndian.Uint32(q.block[:])) }

func (q *questions) uint64() uint64 { return binary.NativeEndian.Uint64(q.block[:]) }

// prop is a CUmemAllocationProp for a device.
func prop(device int32, handleTypes uint32) *[8]uint32 {
	return &[8]uint32{1, handleTypes, 1, uint32(device)}
}

func (q *questions) create(bytes uintptr, p *[8]uint32) uintptr {
	return q.made("cuMemCreate", bytes, uintptr(unsafe.Pointer(p)), 0)
}

// access is a CUmemAccessDesc for device 0.
func access(flags uint32) *[3]uint32 { return &[3]uint32{1, 0, flags} }

func askBefore(q *questions) {
	const when = "before cuInit"
	q.ask(when, "cuDeviceGetCount", q.out())
	q.ask(when, "cuDriverGetVersion", q.out())
	q.ask(when, "cuGetErrorName", 2, q.out())
	q.ask(when, "cuCtxGetCurrent", q.out())
	q.ask(when, "cuMemAlloc_v2", q.out(), 4096)
	q.ask(when, "cuMemAddressReserve", q.out(), granuleBytes, 0, 0, 0)
	q.ask("flags 1", "cuInit", 1)
}

func askDevices(q *questions) {
	q.ask("ordinal -1", "cuDeviceGet", q.out(), ^uintptr(0))
	q.ask("ordinal 99", "cuDeviceGet", q.out(), 99)
	q.ask("device 99", "cuDeviceGetName", q.out(), 100, 99)
	q.ask("no room", "cuDeviceGetName", q.out(), 0, 0)
	q.ask("device 99", "cuDeviceTotalMem_v2", q.out(), 99)
	q.ask("attribute 0", "cuDeviceGetAttribute", q.out(), 0, 0)
	q.ask("attribute 10000", "cuDeviceGetAttribute", q.out(), 10000, 0)
	q.ask("device 99", "cuDeviceGetAttribute", q.out(), 16, 99)
	for _, attribute := range []uintptr{10, 19, 31, 41, 78, 91, 92, 93, 94, 99, 102, 103, 115, 122, 123} {
		q.ok("cuDeviceGetAttribute", q.out(), attribute, 0)
		q.answer(fmt.Sprintf("attribute %d", attribute), fmt.Sprint(q.int32()))
	}
	for _, figure := range []struct {
		attribute   uintptr
		least, most int32
	}{
		// Attributes that differ between machines: multiprocessors, copy engines, compute capability, other abilities.
		{16, 1, 1024},
		{40, 0, 32},
		{75, 5, 32},
		{76, 0, 9},
		{83, 0, 1},
		{88, 0, 1},
		{89, 0, 1},
		{110, 0, 1},
		{116, 0, 1},
		{119, 0, 15},
	} {
		q.ok("cuDeviceGetAttribute", q.out(), figure.attribute, 0)
		plausible := figure.least <= q.int32() && q.int32() <= figure.most
		q.answer(fmt.Sprintf("attribute %d, plausible", figure.attribute), fmt.Sprint(plausible))
	}
	q.ask("device 99", "cuDevicePrimaryCtxRetain", q.out(), 99)
	q.ask("not retained", "cuDevicePrimaryCtxRelease_v2", 0)
	q.ask("device 99", "cuDevicePrimaryCtxGetState", q.out(), q.out()+8, 99)
	q.ask("success", "cuGetErrorName", 0, q.out())
	q.ask("result 12345", "cuGetErrorName", 12345, q.out())
	q.ask("result 12345", "cuGetErrorString", 12345, q.out())
}

func askMemory(q *questions) {
	q.ask("0 bytes", "cuMemAlloc_v2", q.out(), 0)
	q.ask("-1 bytes", "cuMemAlloc_v2", q.out(), ^uintptr(0))
	q.ask("1<<63 bytes", "cuMemAlloc_v2", q.out(), 1<<63)
	q.ask("1<<63-1 bytes", "cuMemAlloc_v2", q.out(), 1<<63-1)
	q.ask("1<<50 bytes", "cuMemAlloc_v2", q.out(), 1<<50)
	p := q.plain(1 << 20)
	q.answer("1 MiB, multiple of 512", fmt.Sprint(p%512 == 0))
	q.ask("inside", "cuMemFree_v2", p+512)
	q.ask("nothing there", "cuMemFree_v2", 4096)
	q.ask("address 0", "cuMemFree_v2", 0)
	q.ask("misaligned", "cuMemsetD32Async", p+1, 0, 4, 0)
	q.ask("misaligned", "cuMemsetD16Async", p+1, 0, 4, 0)
	q.ask("no bytes at 0", "cuMemsetD8Async", 0, 0, 0, 0)
	q.ask("past the end", "cuMemsetD8Async", p, 0, 64<<30, 0)
	q.ask("-1 bytes", "cuMemsetD8Async", p, 0, ^uintptr(0), 0)
	q.ask("at 0", "cuMemsetD8Async", 0, 0, 8, 0)
	q.ask("no bytes at 0", "cuMemcpyDtoDAsync_v2", 0, 0, 0, 0)
	q.ask("from 0", "cuMemcpyDtoDAsync_v2", p, 0, 8, 0)
	q.ask("overlapping", "cuMemcpyDtoDAsync_v2", p, p+4, 8, 0)
	q.ask("from host 0", "cuMemcpyHtoD_v2", p, 0, 8)
	q.ask("into host memory as device memory", "cuMemcpyHtoD_v2", q.out(), q.out(), 8)
	q.ask("host to host", "cuMemcpy", q.out(), q.out()+64, 8)
	q.ask("host to device", "cuMemcpy", p, q.out(), 8)
	q.ok("cuMemFree_v2", p)
	q.ask("twice", "cuMemFree_v2", p)
	q.ask("freed", "cuMemsetD8Async", p, 0, 8, 0)

	q.ask("0 bytes", "cuMemHostAlloc", q.out(), 0, 0)
	q.answer("0 bytes, pinned at 0", fmt.Sprint(q.uint64() == 0))
	q.ask("flags 8", "cuMemHostAlloc", q.out(), 4096, 8)
	host := q.made("cuMemHostAlloc", 8192, 0)
	q.ask("pinned", "cuMemHostGetDevicePointer_v2", q.out(), host+4096, 0)
	q.answer("device pointer is the host's", fmt.Sprint(uintptr(q.uint64()) == host+4096))
	q.ask("flags 1", "cuMemHostGetDevicePointer_v2", q.out(), host, 1)
	q.ask("pageable", "cuMemHostGetDevicePointer_v2", q.out(), q.out(), 0)
	q.ask("pinned", "cuMemHostGetFlags", q.out(), host)
	q.answer("pinned, flags", fmt.Sprint(q.int32()))
	q.ask("pinned again", "cuMemHostRegister_v2", host, 4096, 0)
	q.ask("pinned", "cuMemsetD8Async", host, 7, 4096, 0)
	q.ask("pinned", "cuMemFree_v2", host)
	q.ask("pinned", "cuMemHostUnregister", host)
	q.ask("inside", "cuMemFreeHost", host+4096)
	q.ok("cuMemFreeHost", host)
	q.ask("twice", "cuMemFreeHost", host)
	q.ask("address 0", "cuMemFreeHost", 0)
	page := make([]byte, 3*4096)
	at := (q.address(&page[0]) + 4095) / 4096 * 4096
	q.ask("0 bytes", "cuMemHostRegister_v2", at, 0, 0)
	q.ask("address 0", "cuMemHostRegister_v2", 0, 4096, 0)
	q.ask("8 KiB", "cuMemHostRegister_v2", at, 8192, 0)
	q.ask("again", "cuMemHostRegister_v2", at, 8192, 0)
	q.ask("inside", "cuMemHostRegister_v2", at+4096, 4096, 0)
	q.ask("registered", "cuMemHostGetDevicePointer_v2", q.out(), at, 0)
	q.ask("registered", "cuMemFreeHost", at)
	q.ask("inside", "cuMemHostUnregister", at+4096)
	q.ask("its start", "cuMemHostUnregister", at)
	q.ask("twice", "cuMemHostUnregister", at)
	q.ask("width 0", "cuMemAllocPitch_v2", q.out(), q.out()+8, 0, 4, 4)
	q.ask("element 3", "cuMemAllocPitch_v2", q.out(), q.out()+8, 100, 4, 3)
}

func askVirtual(q *questions) {
	for _, bytes := range []uintptr{0, 1, granuleBytes + 1, ^uintptr(granuleBytes - 1), 1 << 48} {
		q.ask(fmt.Sprintf("%#x bytes", bytes), "cuMemAddressReserve", q.out(), bytes, 0, 0, 0)
	}
	q.ask("alignment 3", "cuMemAddressReserve", q.out(), granuleBytes, 3, 0, 0)
	q.ask("flags 1", "cuMemAddressReserve", q.out(), granuleBytes, 0, 0, 1)
	aligned := q.made("cuMemAddressReserve", granuleBytes, 1<<30, 0, 0)
	q.answer("alignment 1 GiB", fmt.Sprint(aligned%(1<<30) == 0))
	q.ok("cuMemAddressFree", aligned, granuleBytes)
	q.ask("nothing there", "cuMemAddressFree", granuleBytes, granuleBytes)

	own := prop(0, 1)
	properties := q.address(own)
	q.ask("option 2", "cuMemGetAllocationGranularity", q.out(), properties, 2)
	for _, wrong := range []struct {
		what string
		prop *[8]uint32
	}{
		{"device 99", prop(99, 0)},
		{"device -1", prop(-1, 0)},
		{"type 0", &[8]uint32{0, 0, 1, 0}},
		{"no location", &[8]uint32{1, 0, 0, 0}},
		{"handle type 64", prop(0, 64)},
		{"handle type 3", prop(0, 3)},
	} {
		q.ask(wrong.what, "cuMemGetAllocationGranularity", q.out(), uintptr(unsafe.Pointer(wrong.prop)), 0)
		q.ask(wrong.what, "cuMemCreate", q.out(), granuleBytes, uintptr(unsafe.Pointer(wrong.prop)), 0)
	}
	for _, bytes := range []uintptr{0, 1, granuleBytes + 1, ^uintptr(granuleBytes - 1), 1 << 50} {
		q.ask(fmt.Sprintf("%#x bytes", bytes), "cuMemCreate", q.out(), bytes, properties, 0)
	}
	q.ask("flags 1", "cuMemCreate", q.out(), granuleBytes, properties, 1)
	q.ask("no properties", "cuMemCreate", q.out(), granuleBytes, 0, 0)

	h, p := q.create(granuleBytes, own), q.made("cuMemAddressReserve", 4*granuleBytes, 0, 0, 0)
	two := q.create(2*granuleBytes, prop(0, 0))
	q.ask("nothing mapped", "cuMemUnmap", p, granuleBytes)
	q.ask("nothing mapped", "cuMemSetAccess", p, granuleBytes, uintptr(unsafe.Pointer(access(3))), 1)
	q.ask("offset", "cuMemMap", p, granuleBytes, granuleBytes, two, 0)
	q.ask("flags 1", "cuMemMap", p, granuleBytes, 0, h, 1)
	q.ask("handle 0", "cuMemMap", p, granuleBytes, 0, 0, 0)
	q.ask("0 bytes", "cuMemMap", p, 0, 0, h, 0)
	q.ask("part of it", "cuMemMap", p, granuleBytes, 0, two, 0)
	q.ask("more than it", "cuMemMap", p, 2*granuleBytes, 0, h, 0)
	q.ask("misaligned", "cuMemMap", p+512, granuleBytes, 0, h, 0)
	q.ask("not reserved", "cuMemMap", granuleBytes, granuleBytes, 0, h, 0)
	q.ask("first", "cuMemMap", p, granuleBytes, 0, h, 0)
	q.ask("third", "cuMemMap", p+2*granuleBytes, granuleBytes, 0, h, 0)
	q.ask("over one", "cuMemMap", p, granuleBytes, 0, h, 0)
	q.ask("no access yet", "cuMemsetD8Async", p, 0, 8, 0)
	q.ask("no descriptions", "cuMemSetAccess", p, granuleBytes, uintptr(unsafe.Pointer(access(3))), 0)
	q.ask("flags 2", "cuMemSetAccess", p, granuleBytes, uintptr(unsafe.Pointer(access(2))), 1)
	q.ask("device 99", "cuMemSetAccess", p, granuleBytes, uintptr(unsafe.Pointer(&[3]uint32{1, 99, 3})), 1)
	q.ask("no location", "cuMemSetAccess", p, granuleBytes, uintptr(unsafe.Pointer(&[3]uint32{0, 0, 3})), 1)
	q.ask("a hole behind", "cuMemSetAccess", p, 2*granuleBytes, uintptr(unsafe.Pointer(access(3))), 1)
	q.ask("a hole before", "cuMemSetAccess", p+granuleBytes, 2*granuleBytes, uintptr(unsafe.Pointer(access(3))), 1)
	q.ask("over a hole", "cuMemSetAccess", p, 3*granuleBytes, uintptr(unsafe.Pointer(access(3))), 1)
	q.ask("read only", "cuMemSetAccess", p, granuleBytes, uintptr(unsafe.Pointer(access(1))), 1)
	q.ask("read only", "cuMemsetD8Async", p, 0, 8, 0)
	q.ask("read only", "cuMemcpyDtoH_v2", q.out(), p, 8)
	q.ask("read and write", "cuMemSetAccess", p, granuleBytes, uintptr(unsafe.Pointer(access(3))), 1)
	q.ask("read and write", "cuMemsetD8Async", p, 0, 8, 0)
	q.ok("cuCtxSynchronize") // before the access is taken away
	q.ask("none again", "cuMemSetAccess", p, granuleBytes, uintptr(unsafe.Pointer(access(0))), 1)
	q.ask("none again", "cuMemsetD8Async", p, 0, 8, 0)
	q.ask("mapped", "cuMemAddressFree", p, 4*granuleBytes)
	q.ask("virtual", "cuMemFree_v2", p)

	q.ask("with type", "cuMemExportToShareableHandle", q.out(), h, 1, 0)
	fd := uintptr(uint32(q.int32()))
	q.ask("type 0", "cuMemExportToShareableHandle", q.out(), h, 0, 0)
	q.ask("without type", "cuMemExportToShareableHandle", q.out(), two, 1, 0)
	q.ask("type 0", "cuMemImportFromShareableHandle", q.out(), fd, 0)
	q.ask("no file", "cuMemImportFromShareableHandle", q.out(), 9999, 1)
	q.ask("a file", "cuMemImportFromShareableHandle", q.out(), fd, 1)
	imported := uintptr(q.uint64())
	q.answer("imported is the same handle", fmt.Sprint(imported == h))
	q.ask("imported", "cuMemExportToShareableHandle", q.out(), imported, 1, 0)
	q.ask("imported", "cuMemRelease", imported)
	q.ask("over a hole", "cuMemUnmap", p, 3*granuleBytes)
	q.ask("nothing any more", "cuMemUnmap", p, granuleBytes)
	q.ask("handle 0", "cuMemRelease", 0)
	q.ok("cuMemRelease", h)
	q.ask("twice", "cuMemRelease", h)
	q.ask("released", "cuMemMap", p, granuleBytes, 0, h, 0)

	q.ok("cuMemMap", p, 2*granuleBytes, 0, two, 0)
	q.ok("cuMemRelease", two)
	q.ask("released while mapped", "cuMemMap", p+2*granuleBytes, 2*granuleBytes, 0, two, 0)
	q.ask("a part", "cuMemUnmap", p, granuleBytes)
	q.ask("from the middle", "cuMemUnmap", p+granuleBytes, granuleBytes)
	q.ask("misaligned", "cuMemUnmap", p+512, 2*granuleBytes)
	q.ask("0 bytes", "cuMemUnmap", p, 0)
	q.ask("past the reservation", "cuMemUnmap", p, 6*granuleBytes)
	q.ask("whole", "cuMemUnmap", p, 2*granuleBytes)
	q.ask("a part", "cuMemAddressFree", p, 2*granuleBytes)
	q.ask("whole", "cuMemAddressFree", p, 4*granuleBytes)
	q.ask("twice", "cuMemAddressFree", p, 4*granuleBytes)
}
