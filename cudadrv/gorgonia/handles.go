//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia

import (
	"unsafe"

	"gorgonia.org/cu"

	"github.com/go-vram/vram/cudadrv"
)

// A handle of gorgonia.org/cu is a structure with one C pointer. Where that is no longer so, one of these
// indices is not 0 and nothing compiles.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(cu.Stream{})-unsafe.Sizeof(uintptr(0))]
	_ = [1]struct{}{}[unsafe.Sizeof(cu.Event{})-unsafe.Sizeof(uintptr(0))]
	_ = [1]struct{}{}[unsafe.Sizeof(cu.CUContext{})-unsafe.Sizeof(uintptr(0))]
	_ = [1]struct{}{}[unsafe.Sizeof(cu.DevicePtr(0))-unsafe.Sizeof(uintptr(0))]
)

// FromStream is the number of a stream: for vram.Device.AdoptStream. It makes no call, and the stream stays who it
// belongs to. cu.NoStream is 0, the legacy default stream.
func FromStream(s cu.Stream) cudadrv.Stream {
	return cudadrv.Stream(*(*uintptr)(unsafe.Pointer(&s)))
}

// ToStream is FromStream backwards: the handle of a vram.Stream for calls of gorgonia.org/cu.
func ToStream(s cudadrv.Stream) cu.Stream {
	number := uintptr(s)
	return *(*cu.Stream)(unsafe.Pointer(&number))
}

// FromEvent is the number of an event.
func FromEvent(e cu.Event) cudadrv.Event {
	return cudadrv.Event(*(*uintptr)(unsafe.Pointer(&e)))
}

// ToEvent is FromEvent backwards.
func ToEvent(e cudadrv.Event) cu.Event {
	number := uintptr(e)
	return *(*cu.Event)(unsafe.Pointer(&number))
}

// FromContext is the number of a context: for dynamic.Config. It makes no call.
func FromContext(c cu.CUContext) uintptr {
	return *(*uintptr)(unsafe.Pointer(&c))
}

// ToContext is FromContext backwards.
func ToContext(c uintptr) cu.CUContext {
	return *(*cu.CUContext)(unsafe.Pointer(&c))
}

// FromPtr is a device address.
func FromPtr(p cu.DevicePtr) cudadrv.Ptr { return cudadrv.Ptr(p) }

// ToPtr is FromPtr backwards: the address of a vram.Buffer for calls of gorgonia.org/cu.
func ToPtr(p cudadrv.Ptr) cu.DevicePtr { return cu.DevicePtr(p) }
