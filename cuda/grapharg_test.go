package cuda_test

import (
	"errors"
	"runtime"
	"slices"
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
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// failing is a device whose driver calls can be made to fail, or watched. No checker serialises them.
type failing struct {
	*testing.T
	machine *sim.Driver
	faults  *fault.Driver
	dev     *vram.Device
	touch   *cuda.Function
}

func newFailing(t *testing.T, config sim.Config) (*failing, *cuda.Context) {
	t.Helper()
	config.TimedKernels = true
	f := &failing{T: t, machine: sim.New(config)}
	f.faults = fault.Wrap(f.machine)
	var err error
	f.dev, err = vram.Open(vram.Config{Driver: f.faults})
	require.NoError(t, err)
	t.Cleanup(func() {
		f.faults.SetBefore(nil)
		f.faults.Clear()
		assert.NoError(t, f.dev.Close())
	})
	c := f.context()
	m, err := c.LoadModule([]byte(ptx))
	require.NoError(t, err)
	f.touch, err = m.Function("touch")
	require.NoError(t, err)
	return f, c
}

func (f *failing) context() *cuda.Context {
	f.Helper()
	s, err := f.dev.NewStream()
	require.NoError(f, err)
	c, err := cuda.NewContext(s)
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, c.Close()) })
	return c
}

func (f *failing) alloc(c *cuda.Context, bytes int64) cuda.Buffer {
	f.Helper()
	b, err := c.Alloc(bytes)
	require.NoError(f, err)
	return b
}

// A launch has the arguments and the order of one moment: whichever of its driver calls the other call meets, the driver is not
// told of new arguments between the first call of a launch and its last, nor of a launch while the arguments change.
func TestArgumentsChangeBetweenLaunches(t *testing.T) {
	const setParams, graphLaunch = "cuGraphExecKernelNodeSetParams", "cuGraphLaunch"
	for _, meets := range []string{"cuEventRecord", "cuStreamWaitEvent", graphLaunch, setParams} {
		t.Run(meets, func(t *testing.T) {
			r, c := newFailing(t, sim.Config{})
			d := r.context()
			x, y := r.alloc(d, mib), r.alloc(d, mib)
			g, err := c.Capture(func() error { return c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)) })
			require.NoError(t, err)
			set := func() error { return g.SetArgs(0, cuda.Cover(2, 1), cuda.InOut(y)) }
			require.NoError(t, set())
			launch := func() error { return g.Launch(c) }
			first, second := launch, set
			if meets == setParams {
				first, second = set, launch
			}
			var mu sync.Mutex
			var calls []string
			var begun atomic.Bool
			ended := make(chan error, 1)
			r.faults.SetBefore(func(function string) {
				mu.Lock()
				calls = append(calls, function)
				mu.Unlock()
				if function != meets || begun.Swap(true) {
					return
				}
				go func() { ended <- second() }()
				for range 2000 { // the other call gets as far as it can
					runtime.Gosched()
				}
				mu.Lock()
				calls = append(calls, "back in "+meets)
				mu.Unlock()
			})
			require.NoError(t, first())
			require.NoError(t, <-ended)
			r.faults.SetBefore(nil)
			at := slices.Index(calls, "back in "+meets)
			forbidden := setParams
			if meets == setParams {
				forbidden = graphLaunch
			}
			assert.NotContains(t, calls[:at], forbidden, "the driver has both calls at once")
			if meets != setParams {
				assert.Less(t, slices.Index(calls, graphLaunch), slices.Index(calls, setParams))
			}
			require.NoError(t, errors.Join(g.Close(), x.Free(), y.Free()))
		})
	}
}

// Launches, new arguments and Close from many goroutines: each ends, and none but Close's refusals fails.
func TestArgumentsOfManyGoroutines(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	d := r.context()
	x := r.alloc(c, mib)
	g, err := c.Capture(func() error { return c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)) })
	require.NoError(t, err)
	var group sync.WaitGroup
	var launches atomic.Int64
	for _, on := range []*cuda.Context{c, d, r.context()} {
		y := r.alloc(on, mib)
		group.Go(func() {
			for range 300 {
				if err := g.Launch(on); err != nil {
					assert.ErrorIs(t, err, cuda.ErrGraphClosed)
				}
				launches.Add(1)
			}
		})
		group.Go(func() {
			for i := range 100 {
				if err := g.SetArgs(0, cuda.Cover(i+1, 1), cuda.InOut(y)); err != nil {
					assert.ErrorIs(t, err, cuda.ErrGraphClosed)
				}
				if err := g.SetArg(0, 0, cuda.InOut(y)); err != nil {
					assert.ErrorIs(t, err, cuda.ErrGraphClosed)
				}
				assert.Len(t, g.Kernels(), 1)
			}
			assert.NoError(t, y.Free())
		})
	}
	group.Go(func() {
		for launches.Load() < 600 {
			runtime.Gosched()
		}
		assert.NoError(t, g.Close())
	})
	group.Wait()
	require.ErrorIs(t, g.Launch(c), cuda.ErrGraphClosed)
	require.NoError(t, x.Free())
}

// A launch waits for work on its new buffers, and no longer for work on the replaced ones.
func TestNewArgumentsAreInOrder(t *testing.T) {
	r, c := newRig(t)
	d, e := r.context(), r.context()
	x, y := r.alloc(d, mib), r.alloc(e, mib)
	g := r.graph(c, func() {
		tmp := r.alloc(c, mib)
		require.NoError(t, c.Launch(r.empty, cuda.Cover(1, 1)))
		require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(tmp)))
		r.free(tmp)
	})
	for _, b := range []cuda.Buffer{x, y, x} {
		require.NoError(t, g.SetArgs(1, cuda.Cover(1, 1), cuda.InOut(b)))
		home := d
		if b == y {
			home = e
		}
		require.NoError(t, r.dev.GPU().Launch(home.Stream().Handle(), time.Hour))
		require.NoError(t, home.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(b)))
		require.NoError(t, g.Launch(c))
		require.NoError(t, home.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(b)))
	}
	require.NoError(t, g.Close())
	r.free(x, y)
}

// The checker knows the buffers of a graph whose arguments were replaced: work past the package on the new buffer, without an
// order, is a race.
func TestNewArgumentsAreChecked(t *testing.T) {
	r, c := newRig(t, vramtest.Expected())
	d := r.context()
	x, y := r.alloc(c, mib), r.alloc(d, mib)
	g := r.graph(c, func() { require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x))) })
	require.NoError(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.InOut(y)))
	require.NoError(t, g.Launch(c))
	require.Empty(t, r.dev.Hazards())
	require.NoError(t, r.dev.GPU().MemsetD8Async(y.Ptr(), 1, mib, d.Stream().Handle()))
	found := r.dev.Hazards()
	require.Len(t, found, 1)
	assert.Equal(t, hazard.Race, found[0].Kind)
	assert.Contains(t, found[0].String(), "set at")
	require.NoError(t, g.Close())
	r.free(x, y)
}

// Arguments that were replaced leave the graph once no launch with them runs, and not before, though they were freed at once.
func TestReplacedArgumentsLeaveTheGraph(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	first := r.alloc(d, mib)
	g := r.graph(c, func() { require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(first))) })
	set := func() cuda.Buffer {
		t.Helper()
		x := r.alloc(d, 8*mib)
		require.NoError(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.InOut(x)))
		r.free(x)
		return x
	}
	for i := range 200 {
		set()
		require.NoError(t, g.Launch([]*cuda.Context{c, d}[i%2]))
		r.sync(c, d)
	}
	pending := r.dev.Stats().PendingBytes
	assert.LessOrEqual(t, pending, 24*mib, "the present arguments, and the last ones")

	x := set()
	require.NoError(t, g.Launch(c))
	last := set()
	again := r.alloc(d, 8*mib)
	assert.NotEqual(t, x.Ptr(), again.Ptr(), "the launch runs")
	r.sync(c, d)
	_, err := r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Equal(t, last.Bytes(), r.dev.Stats().PendingBytes, "the buffer of a later launch")
	require.ErrorIs(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.InOut(again), cuda.InOut(again)), cuda.ErrArgumentCount)
	require.NoError(t, g.Launch(d))
	r.free(again)
	require.NoError(t, g.Close())
	r.free(first)
}

// So do those of one kernel while another one keeps its arguments; and a buffer that outlives the arguments of many graphs
// keeps no trace of them.
func TestReplacedArgumentsLeaveEachKernel(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	d := r.context()
	kept, long := r.alloc(d, mib), r.alloc(d, mib)
	g, err := c.Capture(func() error {
		return errors.Join(c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(long)), c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(long)))
	})
	require.NoError(t, err)
	require.NoError(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.InOut(kept)))
	require.NoError(t, kept.Free())
	var heap int64
	for i := range 3000 {
		if i == 500 {
			heap = heapBytes()
		}
		x := r.alloc(d, mib)
		require.NoError(t, g.SetArgs(1, cuda.Cover(1, 1), cuda.InOut(x)))
		require.NoError(t, g.Launch(c))
		require.NoError(t, g.SetArgs(1, cuda.Cover(1, 1), cuda.InOut(long)))
		require.NoError(t, x.Free())
		require.NoError(t, g.Launch(c))
		if i%5 == 4 { // before it the leases of several arguments wait
			require.NoError(t, c.Synchronize(t.Context()))
		}
		y := r.alloc(d, mib)
		require.NotEqual(t, kept.Ptr(), y.Ptr())
		require.NoError(t, y.Free())
	}
	assert.Less(t, heapBytes()-heap, int64(200<<10))
	assert.LessOrEqual(t, r.dev.Stats().PendingBytes, 8*mib)
	require.NoError(t, g.Close())
	require.NoError(t, long.Free())
	_, err = r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.dev.Stats().PendingBytes)
}

// A call that fails keeps nothing of its arguments, and the graph keeps its own; a refusal to order the memory is made good by
// the next call.
func TestArgumentsThatAreRefused(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	d := r.context()
	x, y := r.alloc(d, mib), r.alloc(d, mib)
	g, err := c.Capture(func() error { return c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)) })
	require.NoError(t, err)
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuGraphExecKernelNodeSetParams", Count: 1, Result: cudadrv.InvalidValue}))
	err = g.SetArgs(0, cuda.Cover(64, 32), cuda.InOut(y))
	require.ErrorIs(t, err, cudadrv.InvalidValue)
	var refused *cuda.LaunchError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, cuda.Cover(64, 32), refused.Geometry, "of the call")
	assert.Equal(t, cuda.Cover(1, 1), g.Kernels()[0].Geometry, "the graph's own")
	require.NoError(t, y.Free())
	_, err = r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.dev.Stats().PendingBytes)

	y = r.alloc(d, mib)
	require.NoError(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.InOut(y)))
	require.NoError(t, y.Free())
	require.NoError(t, g.Launch(c))
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuStreamWaitEvent", Count: 1, Result: cudadrv.InvalidValue}))
	require.NoError(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.InOut(x)))
	require.NoError(t, c.Synchronize(t.Context()))
	_, err = r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Equal(t, mib, r.dev.Stats().PendingBytes)
	require.NoError(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.InOut(x)))
	_, err = r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.dev.Stats().PendingBytes)
	require.NoError(t, g.Close())
	require.NoError(t, x.Free())
}

// Of arguments whose memory the driver refused to order the graph gives up each, and each once, as soon as it can.
func TestArgumentsThatWereRefusedLeaveTogether(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	x := r.alloc(r.context(), mib)
	set := func(g *cuda.Graph) { require.NoError(t, g.SetArgs(0, oneThread, cuda.InOut(x))) }
	g, err := c.Capture(func() error { return c.Launch(r.touch, oneThread, cuda.InOut(x)) })
	require.NoError(t, err)
	set(g)
	require.NoError(t, g.Launch(c))
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuStreamWaitEvent", Result: cudadrv.InvalidValue}))
	set(g)
	set(g)
	assert.Empty(t, cuda.EndedLeases(g))
	r.faults.Clear()
	set(g)
	all := cuda.EndedLeases(g)
	require.Len(t, all, 3)
	for i, l := range all {
		assert.True(t, l.Ended())
		assert.NotContains(t, all[:i], l)
	}
	require.NoError(t, c.Synchronize(t.Context()))
	set(g)
	require.NoError(t, c.Synchronize(t.Context()))
	require.NoError(t, g.Close())
	require.NoError(t, x.Free())
}

// So do the arguments of a closed graph, while its pool stays open.
func TestArgumentsLeaveAPoolWithTheirGraph(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	pool, err := c.NewPool()
	require.NoError(t, err)
	x, y := r.alloc(d, mib), r.alloc(d, mib)
	tmp := cuda.Buffer{}
	g := r.graph(c, func() {
		tmp = r.alloc(c, mib)
		require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(tmp)))
	}, cuda.Shared(pool))
	require.NoError(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.InOut(x)))
	require.NoError(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.InOut(y)))
	require.NoError(t, g.Launch(c))
	r.free(x, y, tmp)
	require.NoError(t, g.Close())
	again := r.alloc(d, mib)
	assert.NotEqual(t, y.Ptr(), again.Ptr(), "the launch runs")
	r.free(again)
	r.sync(c)
	_, err = r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.dev.Stats().PendingBytes)
	require.NoError(t, pool.Close())
}

// The kernels of a graph cannot be told apart where a library has launched one: its arguments are not replaced, and it runs.
func TestAGraphWithAnotherKernelKeepsItsArguments(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	x := r.alloc(c, mib)
	g, err := c.Capture(func() error {
		return errors.Join(c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)), c.LaunchWith("library", func(device cudadrv.Device, on cudadrv.Stream) error {
			kernels := device.(cudadrv.Kernels)
			m, err := kernels.ModuleLoadData([]byte(ptx))
			if err != nil {
				return err
			}
			f, err := kernels.ModuleGetFunction(m, "empty")
			if err != nil {
				return err
			}
			return kernels.LaunchKernel(f, cuda.Cover(1, 1), nil, on)
		}, cuda.InOut(x)))
	})
	require.NoError(t, err)
	require.ErrorIs(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.In(x)), cuda.ErrNodes)
	require.ErrorIs(t, g.SetArg(0, 0, cuda.In(x)), cuda.ErrNodes)
	require.NoError(t, g.Launch(c))
	require.NoError(t, c.Synchronize(t.Context()))
	require.NoError(t, g.Close())
	require.NoError(t, x.Free())
}

// The memory of a pool waits for the launches of each of its graphs, in whichever order they were closed.
func TestAPoolWaitsForLaunchesOfAllGraphs(t *testing.T) {
	for last := range 2 {
		r, c := newRig(t)
		d := r.context()
		pool, err := c.NewPool()
		require.NoError(t, err)
		var graphs [2]*cuda.Graph
		for i := range graphs {
			graphs[i] = r.graph(c, func() {
				tmp := r.alloc(c, 64*mib)
				require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(tmp)))
				r.free(tmp)
			}, cuda.Shared(pool))
		}
		require.NoError(t, graphs[0].Launch(c))
		require.NoError(t, r.dev.GPU().Launch(d.Stream().Handle(), time.Hour))
		require.NoError(t, graphs[1].Launch(d))
		require.NoError(t, graphs[1-last].Close())
		require.NoError(t, graphs[last].Close())
		require.NoError(t, pool.Close())
		x := r.alloc(c, 64*mib) // the memory, if it is free
		require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)))
		assert.Empty(t, r.dev.Hazards())
		r.sync(c, d)
		r.free(x)
	}
}
