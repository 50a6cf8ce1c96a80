package kernelbench

import (
	"errors"
	"runtime"
	"time"
	"unsafe"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic/library"
)

// emptyKernel has the parameters of a usual kernel, and does nothing.
const emptyKernel = `.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) { ret; }
`

// The geometry of a launch of it, and the bytes of each of its three arrays.
const (
	emptyThreads = 256
	emptyBlocks  = 4
	emptyBytes   = 4 * emptyThreads * emptyBlocks
)

// launch measures the host's time of a launch and of the driver's call alone, in turns.
func (b *rig) launch(w workload) (rows []Row, err error) {
	m, err := b.c.LoadModule([]byte(emptyKernel))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.c.Synchronize(b.ctx), m.Unload()) }()
	f, err := m.Function("nothing")
	if err != nil {
		return nil, err
	}
	x, err := b.c.Alloc(3 * emptyBytes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Free()) }()
	shape := cuda.Cover(emptyThreads*emptyBlocks, emptyThreads)
	launch := func() error {
		return b.c.Launch(f, shape, cuda.In(x).Of(0, emptyBytes), cuda.In(x).Of(emptyBytes, emptyBytes), cuda.Out(x).Of(2*emptyBytes, emptyBytes),
			cuda.Value(uint32(emptyThreads*emptyBlocks)))
	}
	samples, count := b.options.Repetitions*repetitionSamples, maxOperations
	if b.options.simulated {
		samples, count = 2, 2
	}
	var ours, raw []sample
	var by string
	err = b.c.Submit(func(device cudadrv.Device, on cudadrv.Stream) error {
		call, name, unload, err := b.driverCall(device, on, shape, x.Ptr())
		if err != nil {
			return err
		}
		by = name
		for range samples {
			for _, turn := range []struct {
				submit func() error
				to     *[]sample
			}{{call, &raw}, {launch, &ours}} {
				s, err := b.hostSample(count, turn.submit)
				if err != nil {
					return errors.Join(err, unload())
				}
				*turn.to = append(*turn.to, s)
			}
		}
		return unload()
	})
	if err != nil {
		return nil, err
	}
	driver := w.figure(PathRaw, nil, raw)
	driver.By = by
	row := w.figure(PathLaunched, nil, ours)
	row.TargetMicros = w.Ratio * driver.Micros
	return []Row{driver, row}, nil
}

// hostSample returns the host's time of submissions: the wait for the device is not part of it.
func (b *rig) hostSample(count int, submit func() error) (sample, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	from := time.Now()
	for range count {
		if err := submit(); err != nil {
			return sample{}, err
		}
	}
	took := time.Since(from)
	runtime.ReadMemStats(&after)
	s := sample{wallMicros: micros(took) / float64(count), allocs: float64(after.Mallocs-before.Mallocs) / float64(count)}
	return s, b.c.Synchronize(b.ctx)
}

// frame has the arguments of the driver's call. It lies in the heap.
type frame struct {
	params    [4]uint64 // the last one has 32 bits
	bytes     uintptr
	extra     [5]uintptr
	arguments [11]uintptr
}

// paramBytes is the size of the parameters.
const paramBytes = 3*8 + 4

// driverCall is a call of cuLaunchKernel and nothing else: through the library where the device is a GPU.
func (b *rig) driverCall(device cudadrv.Device, on cudadrv.Stream, g cuda.Geometry, x cudadrv.Ptr) (call func() error, name string, unload func() error, err error) {
	kernels, ok := device.(cudadrv.Kernels)
	if !ok {
		return nil, "", nil, &cudadrv.CallError{Func: "cuModuleLoadData", Result: cudadrv.NotSupported}
	}
	m, err := kernels.ModuleLoadData([]byte(emptyKernel))
	if err != nil {
		return nil, "", nil, err
	}
	unload = func() error { return kernels.ModuleUnload(m) }
	f, err := kernels.ModuleGetFunction(m, "nothing")
	if err != nil {
		return nil, "", nil, errors.Join(err, unload())
	}
	at := new(frame)
	at.params = [4]uint64{uint64(x), uint64(x) + emptyBytes, uint64(x) + 2*emptyBytes, emptyThreads * emptyBlocks}
	params := unsafe.Slice((*byte)(unsafe.Pointer(&at.params)), paramBytes)
	through := func() error { return kernels.LaunchKernel(f, g, params, on) }
	if b.options.simulated {
		return through, "cudadrv", unload, nil
	}
	driver, err := library.Open("libcuda.so.1")
	if err != nil {
		return nil, "", nil, errors.Join(err, unload())
	}
	function, err := driver.Function("cuLaunchKernel")
	if err != nil {
		return nil, "", nil, errors.Join(err, unload())
	}
	const pointer, size = 1, 2 // CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE
	at.bytes = paramBytes
	at.extra = [5]uintptr{pointer, uintptr(unsafe.Pointer(&at.params)), size, uintptr(unsafe.Pointer(&at.bytes)), 0}
	at.arguments = [11]uintptr{uintptr(f), emptyBlocks, 1, 1, emptyThreads, 1, 1, 0, uintptr(on), 0, uintptr(unsafe.Pointer(&at.extra))}
	return func() error {
		if result := cudadrv.Result(function.Call(at.arguments[:])); result != cudadrv.Success { //nolint:gosec // an enumeration of C
			return &cudadrv.CallError{Func: "cuLaunchKernel", Result: result}
		}
		return nil
	}, "cuLaunchKernel", unload, nil
}
