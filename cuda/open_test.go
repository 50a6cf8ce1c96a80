package cuda_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// computing opens a context on the device that computes without a GPU.
func computing(t *testing.T) *cuda.Context {
	t.Helper()
	c, err := cuda.Open(vram.Config{DriverName: cpu.Name})
	require.NoError(t, err)
	return c
}

// Open gives all that a launch needs, and Close gives all of it back.
func TestOpen(t *testing.T) {
	machine := sim.New(sim.Config{Bytes: true, TimedKernels: true})
	c, err := cuda.Open(vram.Config{Driver: machine, LimitBytes: 64 << 20})
	require.NoError(t, err)
	assert.EqualValues(t, 64<<20, c.Device().Stats().LimitBytes, "the configuration is the caller's")
	assert.Same(t, c.Stream(), must(cuda.NewContext(c.Stream())).Stream())
	x, err := cuda.From(c, []float32{1, 2, 3})
	require.NoError(t, err)
	touch, err := c.Kernel(ptx, "touch")
	require.NoError(t, err)
	require.NoError(t, c.Launch(touch, cuda.Cover(3), cuda.InOut(x)))
	require.NoError(t, x.Free())
	require.NoError(t, c.Close())
	require.NoError(t, c.Close(), "idempotent")
	_, err = c.Device().NewStream()
	require.ErrorIs(t, err, vram.ErrClosed)
	_, err = c.Kernel(ptx, "touch")
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	assert.Empty(t, machine.Device(0).Objects())
	require.NoError(t, machine.Device(0).Audit())
}

// closing is a resource of a context, which its first Close uses. Close fails some times.
type closing struct {
	on              *cuda.Context
	failures, calls int
}

// Close is io.Closer's.
func (r *closing) Close() error {
	r.calls++
	if r.calls == 1 {
		if err := r.on.Synchronize(context.Background()); err != nil {
			return err
		}
	}
	if r.calls <= r.failures {
		return errPlanned
	}
	return nil
}

// Close closes each resource while the context works, and the device also after errors. The next call closes only the rest.
func TestCloseClosesAllThatItCan(t *testing.T) {
	machine := sim.New(sim.Config{})
	c, err := cuda.Open(vram.Config{Driver: machine})
	require.NoError(t, err)
	all := make([]closing, 32)
	for i := range all {
		all[i] = closing{on: c, failures: i % 3}
		_, err := c.Lazily(i, func() (io.Closer, error) { return &all[i], nil })
		require.NoError(t, err)
	}
	err = c.Close()
	require.ErrorIs(t, err, errPlanned)
	require.NotErrorIs(t, err, cuda.ErrNotOpen, "the resources use the context")
	assert.Empty(t, machine.Device(0).Objects())
	for call := 2; call < 5; call++ {
		for i := range all {
			assert.Equal(t, min(call-1, all[i].failures+1), all[i].calls)
		}
		if err = c.Close(); call == 2 {
			require.ErrorIs(t, err, errPlanned)
		} else {
			require.NoError(t, err)
		}
	}
}

// One function of Lazily runs at a time, also for another key.
func TestLazilyOpensOneAtATime(t *testing.T) {
	c := computing(t)
	var opening atomic.Bool
	var all sync.WaitGroup
	for key := range 2 {
		all.Go(func() {
			_, err := c.Lazily(key, func() (io.Closer, error) {
				assert.True(t, opening.CompareAndSwap(false, true), "another one runs")
				for range 10_000 {
					runtime.Gosched()
				}
				opening.Store(false)
				return &closing{on: c}, nil
			})
			assert.NoError(t, err)
		})
	}
	all.Wait()
	require.NoError(t, c.Close())
}

// A value that could not be made is made by the next call with its key.
func TestLazilyOpensAgainAfterAFailure(t *testing.T) {
	c := computing(t)
	failed, made := errors.New("not now"), &closing{on: c}
	_, err := c.Lazily("key", func() (io.Closer, error) { return nil, failed })
	require.ErrorIs(t, err, failed)
	got, err := c.Lazily("key", func() (io.Closer, error) { return made, nil })
	require.NoError(t, err)
	assert.Same(t, made, got)
	require.NoError(t, c.Close())
}

// Close of the context tells of buffers that were not freed, as the device's does.
func TestCloseOfAnOpenedContextTellsOfBuffers(t *testing.T) {
	c := computing(t)
	_, err := c.Alloc(mib)
	require.NoError(t, err)
	var live *vram.InUseError
	require.ErrorAs(t, c.Close(), &live)
	require.NoError(t, c.Close())
}

// A function of Events may close and use the context that another goroutine closes, which waits for the function. So does a
// further Close of another goroutine.
func TestAnEventFunctionClosesTheContext(t *testing.T) {
	var c *cuda.Context
	leaks, closed := 0, make(chan error, 2)
	told := func(before func()) vram.Events {
		return vram.Events{Leak: func(*vram.InUseError) {
			leaks++
			before()
			assert.NoError(t, c.Close(), "the outer one has the error")
			assert.ErrorIs(t, second(c.Workspace(mib)), cuda.ErrNotOpen)
			assert.ErrorIs(t, second(c.Kernel(ptx, "touch")), cuda.ErrNotOpen)
		}}
	}
	leak := func(before func()) {
		t.Helper()
		var err error
		c, err = cuda.Open(vram.Config{Driver: sim.New(sim.Config{}), Events: told(before)})
		require.NoError(t, err)
		_, err = c.Alloc(mib)
		require.NoError(t, err)
	}
	end := func() { closed <- c.Close() }
	var live *vram.InUseError
	leak(func() {})
	go end()
	select {
	case err := <-closed:
		require.ErrorAs(t, err, &live)
	case <-time.After(10 * time.Second):
		require.FailNow(t, "Close waits for the function, which waits for it")
	}
	synctest.Test(t, func(t *testing.T) {
		begun, resume := make(chan struct{}), make(chan struct{})
		closed = make(chan error, 2)
		leak(func() { close(begun); <-resume })
		go end()
		<-begun
		go end()
		synctest.Wait()
		assert.Empty(t, closed)
		close(resume)
		err := errors.Join(<-closed, <-closed)
		require.ErrorAs(t, err, &live)
	})
	assert.Equal(t, 2, leaks)
}

// The device of a context of NewContext is its caller's: Close leaves it open.
func TestCloseLeavesTheDeviceOfAnotherContext(t *testing.T) {
	c := computing(t)
	other, err := cuda.NewContext(c.Stream())
	require.NoError(t, err)
	assert.Nil(t, other.Device())
	assert.Nil(t, (*cuda.Context)(nil).Device())
	require.NoError(t, other.Close())
	b, err := c.Alloc(mib)
	require.NoError(t, err)
	require.NoError(t, errors.Join(b.Free(), c.Close()))
}

// The driver that a variable of the environment names is opened, and a configuration that cannot be is refused.
func TestOpenRespectsTheConfiguration(t *testing.T) {
	t.Setenv("VRAM_DRIVER", cpu.Name)
	t.Setenv("VRAM_MEMORY_LIMIT", "32MiB")
	config, err := vram.ConfigFromEnv(vram.Config{DriverName: "sim"})
	require.NoError(t, err)
	c, err := cuda.Open(config)
	require.NoError(t, err)
	assert.Equal(t, cpu.Name, c.Info().Driver)
	assert.EqualValues(t, 32<<20, c.Device().Stats().LimitBytes)
	require.NoError(t, c.Close())

	var wrong *vram.ConfigError
	_, err = cuda.Open(vram.Config{DriverName: "tpu"})
	require.ErrorAs(t, err, &wrong)
	_, err = vram.OpenAll(vram.Config{DriverName: "tpu"})
	require.ErrorAs(t, err, &wrong)
	_, err = cuda.Open(vram.Config{DriverName: cpu.Name, MemoryFraction: 2})
	require.ErrorAs(t, err, &wrong)
}

// Whichever driver call of Open fails, or panics, nothing stays open.
func TestOpenThatFailsLeavesNothing(t *testing.T) {
	machine := sim.New(sim.Config{})
	for _, function := range []string{"cuDeviceGetCount", "cuDevicePrimaryCtxRetain", "cuStreamCreate"} {
		faults := fault.Wrap(machine)
		require.NoError(t, faults.Add(fault.Rule{Func: function, Result: cudadrv.Unknown}))
		c, err := cuda.Open(vram.Config{Driver: faults})
		require.ErrorIs(t, err, cudadrv.Unknown, function)
		assert.Nil(t, c)
		assert.Empty(t, machine.Device(0).Objects(), function)

		faults = fault.Wrap(machine)
		faults.SetBefore(func(called string) {
			if called == function {
				panic("the driver panics")
			}
		})
		assert.Panics(t, func() { _, _ = cuda.Open(vram.Config{Driver: faults}) }, function)
		assert.Empty(t, machine.Device(0).Objects(), function)
	}
}

// A text is loaded once for all of its kernels, and unloaded after the work of the context.
func TestKernel(t *testing.T) {
	machine := sim.New(sim.Config{TimedKernels: true, Bytes: true})
	faults := fault.Wrap(machine)
	c, err := cuda.Open(vram.Config{Driver: faults})
	require.NoError(t, err)
	for range 3 {
		for _, name := range []string{"touch", "empty"} {
			f, err := c.Kernel(ptx, name)
			require.NoError(t, err)
			assert.Equal(t, name, f.Name())
		}
	}
	assert.EqualValues(t, 1, faults.Calls("cuModuleLoadData"))
	_, err = c.Kernel(ptx, "nothing")
	require.ErrorIs(t, err, cudadrv.NotFound)
	_, err = c.Kernel("no PTX", "nothing")
	require.ErrorIs(t, err, cudadrv.InvalidImage)
	other, err := c.Kernel(ptx+"// another text\n", "empty")
	require.NoError(t, err)
	require.NoError(t, c.Launch(other, cuda.Cover(1))) // unfinished when Close begins
	assert.EqualValues(t, 3, faults.Calls("cuModuleLoadData"))
	require.NoError(t, c.Close())
	assert.EqualValues(t, 2, faults.Calls("cuModuleUnload"))
	require.ErrorIs(t, c.Launch(other, cuda.Cover(1)), cuda.ErrNotOpen)
}

// A graph that has a kernel of the context keeps its module.
func TestKernelInAGraph(t *testing.T) {
	r, c := newRig(t)
	other := r.context()
	f, err := other.Kernel(ptx+"// a text of its own\n", "empty")
	require.NoError(t, err)
	g, err := c.Capture(func() error { return c.Launch(f, cuda.Cover(1)) })
	require.NoError(t, err)
	require.ErrorIs(t, other.Close(), cuda.ErrModuleInUse)
	require.NoError(t, g.Launch(c))
	require.NoError(t, g.Close())
}

// Close in a capture leaves kernels loaded whose launches may not have finished: the next one waits for them, and unloads them.
func TestCloseInACaptureKeepsKernels(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	one, err := cuda.NewContext(c.Stream())
	require.NoError(t, err)
	f, err := one.Kernel(ptx, "empty")
	require.NoError(t, err)
	require.NoError(t, one.Launch(f, cuda.Cover(1, 1)))
	unloads := func() uint64 { return r.faults.Calls("cuModuleUnload") }
	_, err = c.Capture(func() error {
		require.ErrorIs(t, one.Close(), cuda.ErrCapturing)
		assert.Zero(t, unloads())
		return errPlanned
	})
	require.ErrorIs(t, err, errPlanned)
	require.NoError(t, one.Close())
	assert.EqualValues(t, 1, unloads())
	require.NoError(t, one.Close())
}
