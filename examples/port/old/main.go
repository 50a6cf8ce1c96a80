//go:build gorgonia && cgo && linux && (amd64 || arm64)

// Command old computes heat in a plate through a cgo wrapper of the usual kind: global state, raw addresses, arguments by
// unsafe.Pointer, a wait after each launch, free lists by size, and panics. The program port is its last form.
package main

import (
	"io"
	"os"
	"runtime"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/go-vram/vram/examples/port/heat"
)

func main() { run(os.Stdout) }

// gpu is the global state of the wrapper.
var gpu struct { //nolint:gochecknoglobals // made on first use, as such wrappers do
	module cu.Module
	free   map[int64][]cu.DevicePtr // by size
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func arg[T any](v T) unsafe.Pointer {
	word := new(uint64) // gorgonia.org/cu reads 8 bytes of each argument
	*(*T)(unsafe.Pointer(word)) = v
	return unsafe.Pointer(word)
}

func launch(name string, gridX, gridY, blockX, blockY int, args ...unsafe.Pointer) {
	f, err := gpu.module.Function(name)
	check(err)
	check(f.Launch(gridX, gridY, 1, blockX, blockY, 1, 0, cu.Stream{}, args))
	check(cu.Synchronize())
}

func rate(dst, u, conductivity, material, source cu.DevicePtr, scale float32, nx, ny int32) {
	launch("rate", int(nx+31)/32, int(ny+7)/8, 32, 8,
		arg(dst), arg(u), arg(conductivity), arg(material), arg(source), arg(scale), arg(nx), arg(ny))
}

func madd2(dst, a cu.DevicePtr, fa float32, b cu.DevicePtr, fb float32, n int32) {
	launch("madd2", int(n+255)/256, 1, 256, 1, arg(dst), arg(a), arg(fa), arg(b), arg(fb), arg(n))
}

func hold(u, material cu.DevicePtr, held uint8, temperature float32, n int32) {
	launch("hold", int(n+255)/256, 1, 256, 1, arg(u), arg(material), arg(held), arg(temperature), arg(n))
}

func maxdiff(most, a, b cu.DevicePtr, n int32) {
	launch("maxdiff", int(n+255)/256, 1, 256, 1, arg(most), arg(a), arg(b), arg(n))
}

func sum(total, a cu.DevicePtr, n int32) {
	launch("sum", int(n+255)/256, 1, 256, 1, arg(total), arg(a), arg(n))
}

// get takes memory of the free list.
func get(bytes int64) cu.DevicePtr {
	if list := gpu.free[bytes]; len(list) > 0 {
		gpu.free[bytes] = list[:len(list)-1]
		return list[len(list)-1]
	}
	p, err := cu.MemAlloc(bytes)
	check(err)
	return p
}

// put gives memory back to the free list. The caller knows its size.
func put(p cu.DevicePtr, bytes int64) { gpu.free[bytes] = append(gpu.free[bytes], p) }

func upload[T any](values []T) cu.DevicePtr {
	bytes := int64(len(values)) * int64(unsafe.Sizeof(values[0]))
	p := get(bytes)
	check(cu.MemcpyHtoD(p, unsafe.Pointer(&values[0]), bytes))
	return p
}

func run(out io.Writer) {
	runtime.LockOSThread() // the context belongs to the thread
	device, err := cu.GetDevice(0)
	check(err)
	context, err := device.MakeContext(cu.SchedAuto)
	check(err)
	gpu.free = map[int64][]cu.DevicePtr{}
	gpu.module, err = cu.LoadData(heat.PTX)
	check(err)
	const bytes = 4 * heat.Cells
	u, last, both := upload(make([]float32, heat.Cells)), get(bytes), get(8)
	conductivity, material, source := upload(heat.Conductivity()), upload(heat.Material()), upload(heat.Source())
	var results heat.Results
	for round := range heat.Rounds {
		check(cu.Memcpy(last, u, bytes))
		for range heat.Steps {
			r := get(bytes)
			rate(r, u, conductivity, material, source, heat.Heat, heat.NX, heat.NY)
			madd2(u, u, 1, r, heat.Step, heat.Cells)
			hold(u, material, heat.Held, heat.Temperature, heat.Cells)
			put(r, bytes) // safe, since each launch waits
		}
		check(cu.MemsetD32(both, 0, 2))
		maxdiff(both, last, u, heat.Cells)
		sum(both+4, u, heat.Cells)
		check(cu.MemcpyDtoH(unsafe.Pointer(&results[round]), both, 8))
	}
	check(results.Print(out))
	for _, p := range []cu.DevicePtr{u, last, both, conductivity, material, source, get(bytes)} {
		check(cu.MemFree(p))
	}
	check(gpu.module.Unload())
	check(context.Destroy())
}
