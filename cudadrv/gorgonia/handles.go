//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia

import (
	"unsafe"

	"gorgonia.org/cu"

	"github.com/go-vram/vram/cudadrv"
)

// A handle of gorgonia.org/cu is a structure with one C pointer. Otherwise one of these indices is not 0, and the package does
// not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(cu.Stream{})-unsafe.Sizeof(uintptr(0))]
	_ = [1]struct{}{}[unsafe.Sizeof(cu.Event{})-unsafe.Sizeof(uintptr(0))]
	_ = [1]struct{}{}[unsafe.Sizeof(cu.CUContext{})-unsafe.Sizeof(uintptr(0))]
	_ = [1]struct{}{}[unsafe.Sizeof(cu.Module{})-unsafe.Sizeof(uintptr(0))]
	_ = [1]struct{}{}[unsafe.Sizeof(cu.Function{})-unsafe.Sizeof(uintptr(0))]
	_ = [1]struct{}{}[unsafe.Sizeof(cu.Graph{})-unsafe.Sizeof(uintptr(0))]
	_ = [1]struct{}{}[unsafe.Sizeof(cu.ExecGraph{})-unsafe.Sizeof(uintptr(0))]
	_ = [1]struct{}{}[unsafe.Sizeof(cu.DevicePtr(0))-unsafe.Sizeof(uintptr(0))]
)

// FromStream returns the number of a stream: for vram.Device.AdoptStream. It makes no call, and does not change the owner of
// the stream. cu.NoStream is 0, the legacy default stream.
func FromStream(s cu.Stream) cudadrv.Stream {
	return cudadrv.Stream(*(*uintptr)(unsafe.Pointer(&s)))
}

// ToStream returns the handle of a vram.Stream for calls of gorgonia.org/cu: the inverse of FromStream.
func ToStream(s cudadrv.Stream) cu.Stream {
	number := uintptr(s)
	return *(*cu.Stream)(unsafe.Pointer(&number))
}

// FromEvent returns the number of an event.
func FromEvent(e cu.Event) cudadrv.Event {
	return cudadrv.Event(*(*uintptr)(unsafe.Pointer(&e)))
}

// ToEvent is the inverse of FromEvent.
func ToEvent(e cudadrv.Event) cu.Event {
	number := uintptr(e)
	return *(*cu.Event)(unsafe.Pointer(&number))
}

// FromContext returns the number of a context: for dynamic.Config. It makes no call.
func FromContext(c cu.CUContext) uintptr {
	return *(*uintptr)(unsafe.Pointer(&c))
}

// ToContext is the inverse of FromContext.
func ToContext(c uintptr) cu.CUContext {
	return *(*cu.CUContext)(unsafe.Pointer(&c))
}

// FromModule returns the number of a module: for cudadrv.Kernels. It makes no call.
func FromModule(m cu.Module) cudadrv.Module {
	return cudadrv.Module(*(*uintptr)(unsafe.Pointer(&m)))
}

// ToModule is the inverse of FromModule.
func ToModule(m cudadrv.Module) cu.Module {
	number := uintptr(m)
	return *(*cu.Module)(unsafe.Pointer(&number))
}

// FromFunction returns the number of a kernel.
func FromFunction(f cu.Function) cudadrv.Function {
	return cudadrv.Function(*(*uintptr)(unsafe.Pointer(&f)))
}

// ToFunction returns a kernel for launches by gorgonia.org/cu: the inverse of FromFunction.
func ToFunction(f cudadrv.Function) cu.Function {
	number := uintptr(f)
	return *(*cu.Function)(unsafe.Pointer(&number))
}

// FromGraph returns the number of a graph. gorgonia.org/cu makes graphs and cannot launch them: cudadrv.Graphs can.
func FromGraph(g cu.Graph) cudadrv.Graph {
	return cudadrv.Graph(*(*uintptr)(unsafe.Pointer(&g)))
}

// ToGraph is the inverse of FromGraph.
func ToGraph(g cudadrv.Graph) cu.Graph {
	number := uintptr(g)
	return *(*cu.Graph)(unsafe.Pointer(&number))
}

// FromGraphExec returns the number of an executable graph.
func FromGraphExec(x cu.ExecGraph) cudadrv.GraphExec {
	return cudadrv.GraphExec(*(*uintptr)(unsafe.Pointer(&x)))
}

// ToGraphExec is the inverse of FromGraphExec.
func ToGraphExec(x cudadrv.GraphExec) cu.ExecGraph {
	number := uintptr(x)
	return *(*cu.ExecGraph)(unsafe.Pointer(&number))
}

// FromPtr returns a device address.
func FromPtr(p cu.DevicePtr) cudadrv.Ptr { return cudadrv.Ptr(p) }

// ToPtr returns the address of a vram.Buffer for calls of gorgonia.org/cu: the inverse of FromPtr.
func ToPtr(p cudadrv.Ptr) cu.DevicePtr { return cu.DevicePtr(p) }
