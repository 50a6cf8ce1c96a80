//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// driver calls the library by symbol name, on a thread of its own.
type driver struct {
	*testing.T
	handle  uintptr
	symbols map[string]uintptr
	journal *journal // records the answers in the test of answers; nil elsewhere
}

// The fake's modes and kinds, as fakecuda.h has them.
const (
	immediate = 0
	queued    = 1
	threaded  = 2

	kindContexts    = 0
	kindHandles     = 3
	kindAllocations = 5
	kindMappings    = 7

	granuleBytes = 2 << 20
)

// open gives the fake as it is before cuInit. It skips where there is no C compiler to build it. The test stays on its
// thread, whose contexts it sees.
func open(t *testing.T) *driver {
	t.Helper()
	if library == "" {
		t.Skip("no C compiler to build the fake with") //nolint:forbidigo // there is nothing to test then
	}
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	runtime.LockOSThread()
	d := &driver{T: t, handle: handle, symbols: map[string]uintptr{}}
	if !hardware {
		d.value("fakecuda_reset")
		t.Cleanup(func() { d.value("fakecuda_reset") })
	}
	t.Cleanup(runtime.UnlockOSThread)
	return d
}

// start opens the fake, initialises it and makes the primary context current.
func start(t *testing.T) *driver {
	t.Helper()
	d := open(t)
	d.ok("cuInit", 0)
	var context uintptr
	d.ok("cuDevicePrimaryCtxRetain", uintptr(unsafe.Pointer(&context)), 0)
	d.ok("cuCtxSetCurrent", context)
	return d
}

func (d *driver) symbol(name string) uintptr {
	d.Helper()
	if _, found := d.symbols[name]; !found {
		address, err := purego.Dlsym(d.handle, name)
		require.NoError(d, err)
		d.symbols[name] = address
	}
	return d.symbols[name]
}

//go:uintptrescapes
func (d *driver) value(name string, arguments ...uintptr) uintptr {
	d.Helper()
	if d.journal != nil && !d.journal.call(name) {
		return notMade
	}
	result, _, _ := purego.SyscallN(d.symbol(name), arguments...)
	return result
}

// count returns the result of a function that returns an int or a long.
//
//go:uintptrescapes
func (d *driver) count(name string, arguments ...uintptr) int {
	d.Helper()
	return int(int32(d.value(name, arguments...)))
}

//go:uintptrescapes
func (d *driver) result(name string, arguments ...uintptr) cudadrv.Result {
	d.Helper()
	return cudadrv.Result(int32(d.value(name, arguments...)))
}

//go:uintptrescapes
func (d *driver) ok(name string, arguments ...uintptr) {
	d.Helper()
	result := d.result(name, arguments...)
	if d.journal != nil {
		d.journal.prepared(name, result)
		return
	}
	require.Equal(d, cudadrv.Success, result, name)
}

// refused asserts a call's result.
//
//go:uintptrescapes
func (d *driver) refused(want cudadrv.Result, name string, arguments ...uintptr) {
	d.Helper()
	assert.Equal(d, want, d.result(name, arguments...), name)
}

// address returns the address of a pointer's target, and keeps the target in place for the test. It is needed
// where the address is not computed in the list of arguments itself.
func (d *driver) address(pointer any) uintptr {
	d.Helper()
	var pin runtime.Pinner
	pin.Pin(pointer)
	d.Cleanup(pin.Unpin)
	return reflect.ValueOf(pointer).Pointer()
}

// text is a C string for the length of the test.
func (d *driver) text(s string) uintptr {
	d.Helper()
	return d.address(&append([]byte(s), 0)[0])
}

// made returns the object that a call writes to its first argument.
//
//go:uintptrescapes
func (d *driver) made(name string, arguments ...uintptr) uintptr {
	d.Helper()
	var pin runtime.Pinner
	defer pin.Unpin()
	out := new(uintptr)
	pin.Pin(out)
	d.ok(name, append([]uintptr{uintptr(unsafe.Pointer(out))}, arguments...)...)
	return *out
}

func (d *driver) fail(name string, occurrence uintptr, result cudadrv.Result) {
	d.Helper()
	require.Equal(d, 1, d.count("fakecuda_fail", d.text(name), occurrence, uintptr(result)))
}

// live is the number of live objects, of one kind or, with -1, of all.
func (d *driver) live(kind int) int {
	d.Helper()
	return d.count("fakecuda_live", uintptr(kind))
}

func (d *driver) plain(bytes uintptr) uintptr {
	d.Helper()
	return d.made("cuMemAlloc_v2", bytes)
}

func (d *driver) stream() uintptr {
	d.Helper()
	return d.made("cuStreamCreate", 1)
}

func (d *driver) event() uintptr {
	d.Helper()
	return d.made("cuEventCreate", 2)
}

func (d *driver) freeBytes() int {
	d.Helper()
	var freeBytes, totalBytes uintptr
	d.ok("cuMemGetInfo_v2", uintptr(unsafe.Pointer(&freeBytes)), uintptr(unsafe.Pointer(&totalBytes)))
	return int(freeBytes)
}

// bytes reads device memory.
func (d *driver) bytes(p uintptr, bytes int) []byte {
	d.Helper()
	out := make([]byte, bytes)
	d.ok("cuMemcpyDtoH_v2", uintptr(unsafe.Pointer(&out[0])), p, uintptr(bytes))
	return out
}
