package cuda_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/eachcall"
)

const ourTests = "github.com/go-vram/vram/cuda_test."

// launcher is a program's own wrapper of Launch and Alloc.
type launcher struct{ c *cuda.Context }

//go:noinline
func (l *launcher) run(f *cuda.Function, b cuda.Buffer) error {
	return l.c.Launch(f, cuda.Cover(1, 1), cuda.InOut(b))
}

//go:noinline
func allocate[T any](c *cuda.Context, n int, tag string) (cuda.Buffer, error) {
	return c.AllocFor(context.Background(), vram.Request{Bytes: int64(n), Tag: tag})
}

// newGPU is a device whose faults come without a kernel, as a GPU's do.
func newGPU(t *testing.T, config vram.Config) (g *failing, contexts []*cuda.Context) {
	t.Helper()
	g = &failing{T: t, machine: sim.New(sim.Config{Bytes: true, TimedKernels: true})}
	g.faults = fault.Wrap(g.machine)
	config.Driver = g.faults
	config.Helpers = []string{ourTests + "(*launcher).run", ourTests + "allocate"}
	var err error
	g.dev, err = vram.Open(config)
	require.NoError(t, err)
	t.Cleanup(func() { g.faults.Clear(); assert.NoError(t, g.dev.Close()) })
	for range 2 {
		contexts = append(contexts, g.context())
	}
	m, err := contexts[0].LoadModule([]byte(ptx))
	require.NoError(t, err)
	g.touch, err = m.Function("touch")
	require.NoError(t, err)
	return g, contexts
}

// breakDown has every call fail from here on.
func (f *failing) breakDown(r cudadrv.Result) {
	f.Helper()
	require.NoError(f, f.faults.Add(fault.Rule{Func: "*", Result: r}))
}

// A fault of a GPU lists the launches that had not finished, the place where the program called its helper, and the buffers.
func TestAFaultNamesTheLaunchesThatHadNotFinished(t *testing.T) {
	g, all := newGPU(t, vram.Config{FaultPlaces: vram.FaultPlacesOn, Debug: true})
	c, l := all[0], &launcher{all[0]}
	x, err := allocate[float32](c, 512, "weights")
	require.NoError(t, err)
	require.NoError(t, l.run(g.touch, x))
	require.NoError(t, c.Synchronize(t.Context())) // it has finished
	require.NoError(t, l.run(g.touch, x))
	g.breakDown(cudadrv.IllegalAddress)
	err = c.Synchronize(t.Context())
	first, ok := errors.AsType[*vram.FaultError](err)
	require.True(t, ok, err)
	require.ErrorIs(t, err, cudadrv.IllegalAddress)
	require.ErrorIs(t, err, vram.ErrDeviceFailed)
	require.Len(t, first.Launches, 1)
	assert.Equal(t, "touch", first.Launches[0].Kernel)
	assert.Regexp(t, `kernel touch, launched at cuda_test\.TestAFaultNames\w+ \(fault_test\.go:\d+\), with argument 0 512 bytes, tag "weights", `+
		`allocated at cuda_test\.TestAFaultNames\w+ \(fault_test\.go:\d+\)$`, err.Error())

	for range 2 {
		_, err = c.Alloc(1 << 30)
		later, ok := errors.AsType[*vram.DeviceFailedError](err)
		require.True(t, ok, err)
		assert.Same(t, first, later.First)
		require.ErrorIs(t, err, cudadrv.IllegalAddress)
		assert.Regexp(t, `the device failed before: CUDA_ERROR_ILLEGAL_ADDRESS of kernel touch, launched at cuda_test\.TestAFaultNames\w+ \(fault_test\.go:\d+\)$`, err.Error())
		assert.NotContains(t, err.Error(), "weights")
		again, ok := errors.AsType[*vram.FaultError](err)
		require.True(t, ok)
		assert.Same(t, first, again)
	}
	g.faults.Clear()
	require.NoError(t, x.Free())
}

// A launch that another goroutine makes while one synchronizes, after the event that it waits for, counts as one that has not finished.
func TestALaunchDuringASynchronizeHasNotFinished(t *testing.T) {
	g, all := newGPU(t, vram.Config{FaultPlaces: vram.FaultPlacesOn})
	c := all[0]
	x, err := c.Alloc(64)
	require.NoError(t, err)
	require.NoError(t, c.Launch(g.touch, cuda.Cover(1, 1), cuda.In(x)))
	recorded, launched := false, false
	g.faults.SetBefore(func(function string) {
		switch {
		case function == "cuEventRecord":
			recorded = true
		case recorded && !launched:
			launched = true
			assert.NoError(t, c.Launch(g.touch, cuda.Cover(1, 1), cuda.In(x)))
		}
	})
	require.NoError(t, c.Synchronize(t.Context()))
	g.faults.SetBefore(nil)
	require.True(t, launched)
	g.breakDown(cudadrv.LaunchFailed)
	_, err = c.Record()
	first, ok := errors.AsType[*vram.FaultError](err)
	require.True(t, ok, err)
	assert.Len(t, first.Launches, 1)
	g.faults.Clear()
	require.NoError(t, x.Free())
}

// A launch that another goroutine makes while one waits for its own counts as one that has not finished.
func TestALaunchDuringABlockingLaunchHasNotFinished(t *testing.T) {
	g, all := newGPU(t, vram.Config{FaultPlaces: vram.FaultPlacesBlocking})
	c := all[0]
	x, err := c.Alloc(64)
	require.NoError(t, err)
	launch := func() error { return c.Launch(g.touch, cuda.Cover(1, 1), cuda.In(x)) }
	waits, goOn, second := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var count atomic.Int64
	g.faults.SetBefore(func(function string) {
		if function != "cuStreamSynchronize" {
			return
		}
		switch count.Add(1) {
		case 1:
			go func() { second <- launch() }()
			<-waits
		case 2:
			close(waits)
			<-goOn
		}
	})
	require.NoError(t, launch())
	g.breakDown(cudadrv.LaunchFailed)
	close(goOn)
	first, ok := errors.AsType[*vram.FaultError](<-second)
	require.True(t, ok, err)
	assert.Len(t, first.Launches, 1)
	g.faults.SetBefore(nil)
	g.faults.Clear()
	require.NoError(t, x.Free())
}

// Launches of several streams are listed, the youngest of each first; a buffer that was freed is not described by its successor.
func TestAFaultListsLaunchesOfAllStreams(t *testing.T) {
	g, all := newGPU(t, vram.Config{FaultPlaces: vram.FaultPlacesOn})
	for _, c := range all {
		x, err := c.Alloc(64)
		require.NoError(t, err)
		for range 40 {
			require.NoError(t, (&launcher{c}).run(g.touch, x))
		}
		require.NoError(t, x.Free())
	}
	g.breakDown(cudadrv.LaunchFailed)
	_, err := all[0].Record()
	first, ok := errors.AsType[*vram.FaultError](err)
	require.True(t, ok, err)
	assert.Len(t, first.Launches, 64)
	assert.Contains(t, err.Error(), "one of 64 launches that had not finished; kernel touch, launched at cuda_test.TestAFaultLists")
	assert.Contains(t, err.Error(), "argument 0 64 bytes, freed since")
	assert.True(t, strings.HasSuffix(err.Error(), "; and 60 more"), err.Error())
	g.faults.Clear()
}

// With FaultPlacesBlocking the launch itself returns its fault; a launch that the driver refuses is not recorded.
func TestABlockingLaunchReturnsItsFault(t *testing.T) {
	g, all := newGPU(t, vram.Config{FaultPlaces: vram.FaultPlacesBlocking})
	c := all[0]
	x, err := c.Alloc(64)
	require.NoError(t, err)
	require.NoError(t, c.Launch(g.touch, cuda.Cover(1, 1), cuda.In(x)))
	require.NoError(t, g.faults.Add(fault.Rule{Func: "cuLaunchKernel", Count: 1, Result: cudadrv.InvalidValue}))
	require.Error(t, c.Launch(g.touch, cuda.Cover(1, 1), cuda.In(x)))
	g.faults.Clear()
	require.NoError(t, g.faults.Add(fault.Rule{Func: "cuStreamSynchronize", Result: cudadrv.MisalignedAddress}))
	require.NoError(t, g.faults.Add(fault.Rule{Func: "cuMemGetInfo", Result: cudadrv.MisalignedAddress}))
	err = (&launcher{c}).run(g.touch, x)
	first, ok := errors.AsType[*vram.FaultError](err)
	require.True(t, ok, err)
	require.Len(t, first.Launches, 1)
	assert.Contains(t, first.Launches[0].String(), "cuda_test.TestABlockingLaunch")
	g.faults.Clear()
	require.NoError(t, x.Free())
}

// One call is told the fault, however many learn of it at once, and all others that the device failed before.
func TestAFaultIsToldOnceToManyCalls(t *testing.T) {
	g, all := newGPU(t, vram.Config{})
	x, err := all[0].Alloc(64)
	require.NoError(t, err)
	g.breakDown(cudadrv.LaunchFailed)
	var wg sync.WaitGroup
	var told, later, other atomic.Int64
	for n := range 16 {
		wg.Go(func() {
			c := all[n%2]
			for range 8 {
				var err error
				if n%4 < 2 {
					err = c.Synchronize(t.Context())
				} else {
					err = c.Launch(g.touch, cuda.Cover(1, 1), cuda.In(x))
				}
				if d, ok := errors.AsType[*vram.DeviceFailedError](err); ok && d.First != nil {
					later.Add(1)
				} else if _, ok := errors.AsType[*vram.FaultError](err); ok {
					told.Add(1)
				} else {
					other.Add(1)
				}
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, []int64{1, 127, 0}, []int64{told.Load(), later.Load(), other.Load()})
	g.faults.Clear()
	require.NoError(t, x.Free())
}

// A result that refuses one call is no fault of the device: the next calls work.
func TestARefusedCallIsNoFault(t *testing.T) {
	g, all := newGPU(t, vram.Config{})
	x, err := all[0].Alloc(64)
	require.NoError(t, err)
	require.NoError(t, g.faults.Add(fault.Rule{Func: "cuMemsetD8Async", Count: 1, Result: cudadrv.IllegalAddress}))
	err = all[0].Fill8(cuda.Whole(x), 1)
	require.ErrorIs(t, err, cudadrv.IllegalAddress)
	require.NotErrorIs(t, err, vram.ErrDeviceFailed)
	require.NoError(t, all[0].Fill8(cuda.Whole(x), 1))
	require.NoError(t, x.Free())
}

// A fault that Close is the first to learn of is told by Close.
func TestCloseTellsAFault(t *testing.T) {
	machine := sim.New(sim.Config{Bytes: true, TimedKernels: true})
	faults := fault.Wrap(machine)
	dev, err := vram.Open(vram.Config{Driver: faults})
	require.NoError(t, err)
	_, err = dev.NewStream()
	require.NoError(t, err)
	require.NoError(t, faults.Add(fault.Rule{Func: "*", Result: cudadrv.LaunchFailed}))
	err = dev.Close()
	require.ErrorIs(t, err, vram.ErrDeviceFailed)
	assert.Equal(t, 1, strings.Count(err.Error(), "Config.FaultPlaces records"), err.Error())
}

// AllocFor names buffers, in a capture too, where a zeroed buffer is filled at each launch.
func TestAllocForNamesABuffer(t *testing.T) {
	_, all := newGPU(t, vram.Config{Debug: true})
	c := all[0]
	x, err := allocate[int](c, 256, "weights")
	require.NoError(t, err)
	list, err := c.Stream().Stats(t.Context())
	require.NoError(t, err)
	assert.Positive(t, list.LiveBytes)
	var y cuda.Buffer
	graph, err := c.Capture(func() (err error) {
		y, err = c.AllocFor(t.Context(), vram.Request{Bytes: 256, Tag: "scratch", Zero: true})
		return errors.Join(err, c.Copy(cuda.Whole(x), cuda.Whole(y)))
	})
	require.NoError(t, err)
	require.NoError(t, c.Fill8(cuda.Whole(x), 7))
	require.NoError(t, graph.Launch(c))
	host := make([]byte, 256)
	require.NoError(t, cuda.CopyOut(c, host, x))
	assert.Equal(t, make([]byte, 256), host)
	require.NoError(t, y.Free())
	require.NoError(t, graph.Close())
	require.NoError(t, x.Free())
	_, err = (&cuda.Context{}).AllocFor(t.Context(), vram.Request{Bytes: 1})
	require.ErrorIs(t, err, cuda.ErrNotOpen)
}

// A graph is a launch of its own, and a kernel of a capture is none.
func TestAFaultNamesTheLaunchOfAGraph(t *testing.T) {
	for _, places := range []vram.FaultPlaces{vram.FaultPlacesOn, vram.FaultPlacesBlocking} {
		g, all := newGPU(t, vram.Config{FaultPlaces: places})
		c := all[0]
		x, err := c.Alloc(64)
		require.NoError(t, err)
		graph, err := c.Capture(func() error { return (&launcher{c}).run(g.touch, x) })
		require.NoError(t, err)
		require.NoError(t, graph.Launch(c))
		require.NoError(t, c.Synchronize(t.Context()))
		require.NoError(t, g.faults.Add(fault.Rule{Func: "cuGraphLaunch", Count: 1, Result: cudadrv.OutOfMemory}))
		require.ErrorIs(t, graph.Launch(c), cudadrv.OutOfMemory, "a recorded launch that the driver refuses")
		require.NoError(t, c.LaunchWith("library", func(device cudadrv.Device, on cudadrv.Stream) error {
			return device.MemsetD8Async(x.Ptr(), 1, 64, on)
		}, cuda.Out(x)))
		require.NoError(t, graph.Launch(all[1]))
		idle, err := c.Capture(func() error { return (&launcher{c}).run(g.touch, x) }) // is not launched
		require.NoError(t, err)
		g.breakDown(cudadrv.LaunchFailed)
		err = c.Synchronize(t.Context())
		first, ok := errors.AsType[*vram.FaultError](err)
		require.True(t, ok, err)
		var kernels []string
		for _, l := range first.Launches {
			kernels = append(kernels, l.String())
		}
		if places == vram.FaultPlacesBlocking {
			assert.Empty(t, kernels)
			assert.Contains(t, err.Error(), "no recorded launch was unfinished")
		} else {
			require.Len(t, kernels, 2)
			assert.Contains(t, kernels[0], "library, launched at cuda_test.TestAFaultNamesTheLaunchOfAGraph")
			assert.Contains(t, kernels[1], "graph of 1 kernel, launched at cuda_test.TestAFaultNamesTheLaunchOfAGraph")
		}
		g.faults.Clear()
		require.NoError(t, errors.Join(graph.Close(), idle.Close(), x.Free()))
	}
}

// A launch of a graph waits for no SetArgs that has not begun to change the graph, nor does String: SetArgs waits for the launch.
func TestALaunchThatIsRecordedDoesNotWaitForSetArgs(t *testing.T) {
	for _, places := range []vram.FaultPlaces{vram.FaultPlacesOff, vram.FaultPlacesOn, vram.FaultPlacesBlocking} {
		g, all := newGPU(t, vram.Config{FaultPlaces: places})
		c := all[0]
		x, err := c.Alloc(64)
		require.NoError(t, err)
		graph, err := c.Capture(func() error { return c.Launch(g.touch, oneThread, cuda.InOut(x)) })
		require.NoError(t, err)
		g.faults.SetBefore(func(function string) {
			if function != "cuGraphGetNodes" { // SetArgs has begun
				return
			}
			launched := make(chan error, 1)
			go func() {
				assert.Equal(t, "graph of 1 kernel", graph.String())
				launched <- graph.Launch(c)
			}()
			select {
			case err := <-launched:
				assert.NoError(t, err)
			case <-time.After(10 * time.Second):
				panic("the launch waits for SetArgs, which will wait for the launch")
			}
		})
		require.NoError(t, graph.SetArgs(0, oneThread, cuda.InOut(x)))
		g.faults.SetBefore(nil)
		require.NoError(t, c.Synchronize(t.Context()))
		require.NoError(t, errors.Join(graph.Close(), x.Free()))
	}
}

// A fault lists a buffer by the number of its argument, among all arguments.
func TestAFaultNumbersArguments(t *testing.T) {
	g, all := newGPU(t, vram.Config{FaultPlaces: vram.FaultPlacesOn})
	c := all[0]
	x, err := c.Alloc(64)
	require.NoError(t, err)
	f, err := c.Kernel(".version 7.0\n.target sm_70\n.visible .entry late(.param .u32 n, .param .u64 x, .param .u32 m) { ret; }", "late")
	require.NoError(t, err)
	require.NoError(t, c.Launch(f, oneThread, cuda.Value(uint32(1)), cuda.In(x), cuda.Value(uint32(1))))
	g.breakDown(cudadrv.LaunchFailed)
	require.ErrorContains(t, c.Synchronize(t.Context()), "with argument 1 64 bytes")
	g.faults.Clear()
	require.NoError(t, x.Free())
}

// Recorded launches leave nothing, whichever of their calls fails.
func TestAFailedCallOfARecordedLaunchLeavesNothing(t *testing.T) {
	g, all := newGPU(t, vram.Config{FaultPlaces: vram.FaultPlacesBlocking})
	x, err := all[0].Alloc(64)
	require.NoError(t, err)
	y, err := all[1].Alloc(64)
	require.NoError(t, err)
	b := &eachcall.Bench{Faults: g.faults, Tolerated: []string{"cuStreamIsCapturing"}, Left: func() map[string]int { return left(g.machine, g.dev) }}
	b.Run(t, none(func() error {
		return errors.Join((&launcher{all[0]}).run(g.touch, x), (&launcher{all[0]}).run(g.touch, y))
	}))
	require.NoError(t, errors.Join(x.Free(), y.Free()))
}
