//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/gorgonia"
)

// open opens the first device.
func open(t *testing.T, config gorgonia.Config) cudadrv.Device {
	t.Helper()
	dev, err := gorgonia.New(config).Open(0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

func TestHandlesThereAndBack(t *testing.T) {
	newFake(t)
	handlesThereAndBack(t)
}

func handlesThereAndBack(t *testing.T) {
	t.Helper()
	dev := open(t, gorgonia.Config{})

	number, err := dev.StreamCreate()
	require.NoError(t, err)
	s := gorgonia.ToStream(number)
	require.NoError(t, s.Synchronize())
	assert.Equal(t, number, gorgonia.FromStream(s))
	assert.Zero(t, gorgonia.FromStream(cu.NoStream))
	require.NoError(t, s.Destroy())

	e, err := dev.EventCreate()
	require.NoError(t, err)
	ours := gorgonia.ToEvent(e)
	require.NoError(t, ours.Query())
	assert.Equal(t, e, gorgonia.FromEvent(ours))
	require.NoError(t, cu.DestroyEvent(&ours))

	p, err := dev.MemAlloc(4096)
	require.NoError(t, err)
	assert.Equal(t, p, gorgonia.FromPtr(gorgonia.ToPtr(p)))
	assert.EqualValues(t, p, gorgonia.ToPtr(p).Uintptr())
	require.NoError(t, dev.MemFree(p))

	context := newContext(t, 0)
	assert.Equal(t, context, gorgonia.ToContext(gorgonia.FromContext(context)))
	assert.NotZero(t, gorgonia.FromContext(context))
}

func TestKernelsAndGraphsOfBothSides(t *testing.T) {
	newFake(t)
	kernelsAndGraphsOfBothSides(t)
}

// A module of the one side has a kernel of the other one, which either launches; a graph of the other side is launched here.
func kernelsAndGraphsOfBothSides(t *testing.T) {
	t.Helper()
	context := newContext(t, 0)
	dev := open(t, gorgonia.Config{Context: context})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, cu.PushCurrentCtx(context))
	defer func() { _, _ = cu.PopCurrentCtx() }()
	kernels, graphs := dev.(cudadrv.Kernels), dev.(cudadrv.Graphs)

	number, err := kernels.ModuleLoadData([]byte(drivertest.PTX))
	require.NoError(t, err)
	module := gorgonia.ToModule(number)
	assert.Equal(t, number, gorgonia.FromModule(module))
	theirs, err := module.Function("vram_nothing")
	require.NoError(t, err)
	one := cudadrv.Dim3{X: 1, Y: 1, Z: 1}
	require.NoError(t, kernels.LaunchKernel(gorgonia.FromFunction(theirs), cudadrv.Geometry{Grid: one, Block: one}, nil, 0))
	ours, err := kernels.ModuleGetFunction(number, "vram_nothing")
	require.NoError(t, err)
	require.NoError(t, gorgonia.ToFunction(ours).Launch(1, 1, 1, 1, 1, 1, 0, cu.NoStream, nil))

	graph, err := cu.MakeGraph()
	require.NoError(t, err)
	assert.Equal(t, graph, gorgonia.ToGraph(gorgonia.FromGraph(graph)))
	exec, err := graphs.GraphInstantiate(gorgonia.FromGraph(graph))
	require.NoError(t, err)
	require.NoError(t, graphs.GraphLaunch(exec, 0))
	require.NoError(t, dev.CtxSynchronize())
	assert.Equal(t, exec, gorgonia.FromGraphExec(gorgonia.ToGraphExec(exec)))
	require.NoError(t, gorgonia.ToGraphExec(exec).Destroy())
	require.NoError(t, graphs.GraphDestroy(gorgonia.FromGraph(graph)))
	require.NoError(t, kernels.ModuleUnload(number))
}

// Each side uses objects of the other: memory, streams and events are libcuda's.
func TestBothSidesShareTheDevice(t *testing.T) {
	newFake(t)
	bothSidesShareTheDevice(t)
}

func bothSidesShareTheDevice(t *testing.T) {
	t.Helper()
	context := newContext(t, 0)
	dev := open(t, gorgonia.Config{Context: context})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, cu.PushCurrentCtx(context))
	defer func() { _, _ = cu.PopCurrentCtx() }()

	s, err := cu.MakeStream(cu.NonBlocking)
	require.NoError(t, err)
	e, err := cu.MakeEvent(cu.DisableTiming)
	require.NoError(t, err)
	p, err := cu.MemAlloc(1 << 20)
	require.NoError(t, err)
	require.NoError(t, dev.MemsetD8Async(gorgonia.FromPtr(p), 0x5a, 1<<20, gorgonia.FromStream(s)))
	require.NoError(t, dev.EventRecord(gorgonia.FromEvent(e), gorgonia.FromStream(s)))
	require.NoError(t, e.Synchronize())
	back := make([]byte, 1<<20)
	host, ok := dev.(cudadrv.HostMemory)
	require.True(t, ok)
	require.NoError(t, host.MemcpyDtoHAsync(back, gorgonia.FromPtr(p), gorgonia.FromStream(s)))
	require.NoError(t, s.Synchronize())
	for i, b := range back {
		require.Equal(t, byte(0x5a), b, i)
	}
	require.NoError(t, cu.MemFree(p))
	require.NoError(t, dev.EventDestroy(gorgonia.FromEvent(e)))
	require.NoError(t, dev.StreamDestroy(gorgonia.FromStream(s)))
}

func TestTheThreadKeepsItsContext(t *testing.T) {
	newFake(t)
	theThreadKeepsItsContext(t)
}

func theThreadKeepsItsContext(t *testing.T) {
	t.Helper()
	dev := open(t, gorgonia.Config{})
	other := newContext(t, 0)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, cu.PushCurrentCtx(other))
	p, err := dev.MemAlloc(1 << 20)
	require.NoError(t, err)
	require.NoError(t, dev.MemsetD8Async(p, 1, 1<<20, 0))
	require.NoError(t, dev.CtxSynchronize())
	require.NoError(t, dev.MemFree(p))
	_, err = dev.MemAlloc(1 << 60)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	now, err := cu.PopCurrentCtx()
	require.NoError(t, err)
	assert.Equal(t, other, now)
	now, err = cu.CurrentContext()
	require.NoError(t, err)
	assert.Equal(t, cu.CUContext{}, now)
}

func TestErrors(t *testing.T) {
	f := newFake(t)
	dev := open(t, gorgonia.Config{})
	for result, text := range map[cudadrv.Result]string{
		cudadrv.OutOfMemory: "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: 4096 bytes: ",
		214:                 "cuMemAlloc: CUDA_ERROR_ECC_UNCORRECTABLE: 4096 bytes: ",
		123:                 "cuMemAlloc: CUresult(123): 4096 bytes",
	} {
		f.failCall("cuMemAlloc_v2", 1, int32(result))
		_, err := dev.MemAlloc(4096)
		require.ErrorIs(t, err, result)
		require.ErrorContains(t, err, text)
		var failure *cudadrv.CallError
		require.ErrorAs(t, err, &failure)
		assert.Regexp(t, `^gorgonia/driver_test\.go:\d+$`, failure.Place)
	}
	var refused *cudadrv.CallError
	_, err := dev.MemAlloc(-1)
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, cudadrv.InvalidValue, refused.Result)
	f.failCall("cuCtxPushCurrent_v2", 1, int32(cudadrv.InvalidContext))
	_, err = dev.StreamCreate()
	require.ErrorIs(t, err, cudadrv.InvalidContext)
	require.ErrorContains(t, err, "could not be made current")
}

func TestOpening(t *testing.T) {
	f := newFake(t)
	f.set("devices", 2)
	t.Cleanup(func() { f.set("devices", 1) })
	driver := gorgonia.New(gorgonia.Config{Context: newContext(t, 1)})
	count, err := driver.DeviceCount()
	require.NoError(t, err)
	assert.Equal(t, 2, count)
	_, err = driver.Open(0)
	var wrong *dynamic.ContextError
	require.ErrorAs(t, err, &wrong, "the context is one of device 1")
	for _, ordinal := range []int{-1, 2} {
		_, err = driver.Open(ordinal)
		require.ErrorIs(t, err, cudadrv.ErrNoDevice)
		require.ErrorIs(t, err, cudadrv.InvalidDevice)
	}
	dev, err := driver.Open(1)
	require.NoError(t, err)
	assert.Equal(t, 1, dev.Info().Ordinal)
	assert.Equal(t, driver.Name(), dev.Info().Driver)
	require.NoError(t, dev.Close())

	primary := gorgonia.New(gorgonia.Config{})
	f.failCall("cuDevicePrimaryCtxRetain", 1, int32(cudadrv.OutOfMemory))
	_, err = primary.Open(0)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
}

// Close waits for calls in progress, refuses later ones, and has one result.
func TestClosing(t *testing.T) {
	newFake(t).set("mode", threaded)
	closeWhileCallsAreMade(t)
}

func closeWhileCallsAreMade(t *testing.T) {
	t.Helper()
	dev, err := gorgonia.New(gorgonia.Config{}).Open(0)
	require.NoError(t, err)
	const callers = 8
	errs := make(chan error, callers)
	begun := make(chan struct{}, callers)
	for range callers {
		go func() {
			begun <- struct{}{}
			for {
				if _, _, err := dev.MemGetInfo(); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	for range callers {
		<-begun
	}
	closed := make(chan error, 2)
	for range cap(closed) {
		go func() { closed <- dev.Close() }()
	}
	for range cap(closed) {
		require.NoError(t, <-closed)
	}
	for range callers {
		err := <-errs
		require.ErrorIs(t, err, cudadrv.InvalidContext)
		assert.ErrorContains(t, err, "the device is closed")
	}
	_, err = dev.EventCreate()
	require.ErrorIs(t, err, cudadrv.InvalidContext)
	require.ErrorIs(t, dev.MemFree(0), cudadrv.InvalidContext)
}
