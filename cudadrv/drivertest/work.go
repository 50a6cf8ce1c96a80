package drivertest

import (
	"errors"
	"runtime"
	"sync"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

func testWork(b *bench) {
	const bytes = 1 << 20
	p, q := must(b.dev.MemAlloc(bytes))(b), must(b.dev.MemAlloc(bytes))(b)
	s := b.stream()
	for _, on := range []cudadrv.Stream{0, s} {
		b.ok(b.dev.MemsetD8Async(p, 0xff, bytes, on))
		b.ok(b.dev.MemsetD8Async(p+1, 0, 1, on))
		b.ok(b.dev.MemsetD8Async(p+bytes-1, 0, 1, on))
		b.ok(b.dev.MemcpyDtoDAsync(q, p, bytes, on))
		b.ok(b.dev.MemcpyDtoDAsync(q+3, p+5, bytes-5, on))
	}
	b.ok(b.dev.MemsetD8Async(p, 1, 0, s)) // no bytes are no work
	b.ok(b.dev.MemcpyDtoDAsync(q, p, 0, s))
	b.ok(b.dev.StreamSynchronize(s))
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.MemFree(p))
	b.ok(b.dev.MemFree(q))
}

// Work outside memory is refused when it is submitted and does the device no harm.
func testWorkMistakes(b *bench) {
	const bytes = 1 << 20
	outside := []cudadrv.Result{cudadrv.InvalidValue, cudadrv.IllegalAddress}
	p := must(b.dev.MemAlloc(bytes))(b)
	b.refused(b.dev.MemsetD8Async(p, 1, -1, 0), "cuMemsetD8Async", cudadrv.InvalidValue)
	b.refused(b.dev.MemcpyDtoDAsync(p, p, -1, 0), "cuMemcpyDtoDAsync", cudadrv.InvalidValue)
	b.refused(b.dev.MemsetD8Async(0, 1, 8, 0), "cuMemsetD8Async", outside...)
	b.refused(b.dev.MemsetD8Async(p, 1, 64<<30, 0), "cuMemsetD8Async", outside...)
	if b.hasVirtualMemory() {
		reserved := b.reserve(b.granules(2))
		b.refused(b.dev.MemsetD8Async(reserved, 1, b.granules(1), 0), "cuMemsetD8Async", outside...)
		h := b.create(b.granules(1))
		b.ok(b.dev.MemMap(reserved, b.granules(1), h))
		b.refused(b.dev.MemsetD8Async(reserved, 1, b.granules(1), 0), "cuMemsetD8Async", outside...)
		b.ok(b.dev.MemSetAccess(reserved, b.granules(1)))
		b.ok(b.dev.MemsetD8Async(reserved, 1, b.granules(1), 0))
		b.ok(b.dev.CtxSynchronize())
		b.ok(b.dev.MemUnmap(reserved, b.granules(1)))
		b.refused(b.dev.MemsetD8Async(reserved, 1, b.granules(1), 0), "cuMemsetD8Async", outside...)
		b.ok(b.dev.MemRelease(h))
		b.ok(b.dev.MemAddressFree(reserved, b.granules(2)))
	}
	b.ok(b.dev.MemsetD8Async(p, 1, bytes, 0))
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemFree(p))
}

// Each goroutine uses its own memory, streams, events, modules and graphs, on any OS thread.
func testGoroutines(b *bench) {
	freeBytes := b.freeBytes()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 8 {
				if err := b.life(); !assert.NoError(b, err) {
					return
				}
			}
		})
	}
	all.Wait()
	assert.GreaterOrEqual(b, b.freeBytes(), freeBytes-keptBytes)
}

// life runs the work of a goroutine. It returns the first error, and leaves nothing allocated on success.
func (b *bench) life() error {
	p, err := b.dev.MemAlloc(64 << 10)
	if err != nil {
		return err
	}
	s, err := b.dev.StreamCreate()
	if err != nil {
		return err
	}
	e, err := b.dev.EventCreate()
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return b.dev.MemsetD8Async(p, 1, 64<<10, s) },
		func() error { return b.dev.EventRecord(e, s) },
		func() error { return b.dev.StreamWaitEvent(0, e) },
		func() error { return b.dev.EventSynchronize(e) },
		func() error { return b.dev.EventDestroy(e) },
		func() error { return b.dev.StreamDestroy(s) },
		func() error { return b.dev.MemFree(p) },
	}
	if b.hasVirtualMemory() {
		steps = append(steps, b.virtualLife)
	}
	if host, ok := b.dev.(cudadrv.HostMemory); ok && b.info.Capabilities.Has(cudadrv.PinnedHost) {
		steps = append(steps, func() error { return hostLife(b.dev, host) })
	}
	kernels, hasKernels := b.dev.(cudadrv.Kernels)
	if hasKernels = hasKernels && b.info.Capabilities.Has(cudadrv.KernelLaunches); hasKernels {
		steps = append(steps, func() error { return moduleLife(b.dev, kernels) })
	}
	if graphs, ok := b.dev.(cudadrv.Graphs); ok && b.info.Capabilities.Has(cudadrv.GraphLaunches) {
		steps = append(steps, func() error { return graphLife(b.dev, graphs) })
	}
	return inOrder(steps)
}

// inOrder takes steps until one fails.
func inOrder(steps []func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// onStream runs steps with memory and a stream, and gives both back.
func onStream(dev cudadrv.Device, bytes int64, steps func(p cudadrv.Ptr, s cudadrv.Stream) error) error {
	p, err := dev.MemAlloc(bytes)
	if err != nil {
		return err
	}
	s, err := dev.StreamCreate()
	if err != nil {
		return errors.Join(err, dev.MemFree(p))
	}
	err = errors.Join(steps(p, s), dev.StreamSynchronize(s))
	return errors.Join(err, dev.StreamDestroy(s), dev.MemFree(p))
}

// hostLife copies by way of page-locked memory.
func hostLife(dev cudadrv.Device, host cudadrv.HostMemory) error {
	const bytes = 4096
	return onStream(dev, bytes, func(p cudadrv.Ptr, s cudadrv.Stream) error {
		memory, err := host.MemHostAlloc(bytes)
		if err != nil {
			return err
		}
		err = inOrder([]func() error{
			func() error { _, err := host.MemHostGetDevicePointer(memory); return err },
			func() error { return host.MemcpyHtoDAsync(p, memory, s) },
			func() error { return host.MemcpyDtoHAsync(memory, p, s) },
			func() error { return dev.StreamSynchronize(s) },
			func() error { _, _, err := dev.MemGetInfo(); return err },
		})
		return errors.Join(err, host.MemFreeHost(memory))
	})
}

// moduleLife launches a kernel of a module of its own.
func moduleLife(dev cudadrv.Device, kernels cudadrv.Kernels) error {
	return onStream(dev, 4*addedWords, func(p cudadrv.Ptr, s cudadrv.Stream) error {
		m, err := kernels.ModuleLoadData([]byte(PTX))
		if err != nil {
			return err
		}
		f, err := kernels.ModuleGetFunction(m, "vram_add32")
		if err == nil {
			err = inOrder([]func() error{
				func() error { return dev.MemsetD8Async(p, 1, 4*addedWords, s) },
				func() error { return kernels.LaunchKernel(f, wide(addedWords), words(p, p, uint32(addedWords)), s) },
				func() error { return dev.StreamSynchronize(s) },
			})
		}
		return errors.Join(err, kernels.ModuleUnload(m))
	})
}

// graphLife captures, changes and launches a graph.
func graphLife(dev cudadrv.Device, graphs cudadrv.Graphs) error {
	const bytes = 4096
	return onStream(dev, bytes, func(p cudadrv.Ptr, s cudadrv.Stream) (err error) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := graphs.StreamBeginCapture(s, cudadrv.CaptureRelaxed); err != nil {
			return err
		}
		_, _, asked := graphs.StreamGetCaptureInfo(s)
		filled := dev.MemsetD8Async(p, 1, bytes, s)
		g, err := graphs.StreamEndCapture(s)
		if err = errors.Join(asked, filled, err); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, graphs.GraphDestroy(g)) }()
		x, err := graphs.GraphInstantiate(g)
		if err != nil {
			return err
		}
		err = inOrder([]func() error{
			func() error { _, err := graphs.GraphGetNodes(g); return err },
			func() error { return graphs.GraphUpload(x, s) },
			func() error { return graphs.GraphLaunch(x, s) },
			func() error { return dev.StreamSynchronize(s) },
			func() error { return graphs.GraphExecUpdate(x, g) },
			func() error { return graphs.GraphLaunch(x, s) },
			func() error { return dev.StreamSynchronize(s) },
		})
		return errors.Join(err, graphs.GraphExecDestroy(x))
	})
}

// virtualLife reserves, maps and gives everything back.
func (b *bench) virtualLife() error {
	bytes := b.granules(1)
	p, err := b.dev.MemAddressReserve(bytes)
	if err != nil {
		return err
	}
	h, err := b.dev.MemCreate(bytes)
	if err != nil {
		return err
	}
	return inOrder([]func() error{
		func() error { return b.dev.MemMap(p, bytes, h) },
		func() error { return b.dev.MemSetAccess(p, bytes) },
		func() error { return b.dev.MemsetD8Async(p, 1, bytes, 0) },
		func() error { return b.dev.StreamSynchronize(0) },
		func() error { return b.dev.MemUnmap(p, bytes) },
		func() error { return b.dev.MemRelease(h) },
		func() error { return b.dev.MemAddressFree(p, bytes) },
	})
}
