package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// graph captures, and fails the test where that fails.
func (r *rig) graph(c *cuda.Context, f func(), with ...cuda.Option) *cuda.Graph {
	r.Helper()
	g, err := c.Capture(func() error { f(); return nil }, with...)
	require.NoError(r, err)
	return g
}

func (r *rig) read(c *cuda.Context, b cuda.Buffer, n int) []byte {
	r.Helper()
	got := make([]byte, n)
	require.NoError(r, c.CopyOutAt(got, b, 0))
	return got
}

func TestAGraphRunsAtEachLaunch(t *testing.T) {
	for name, mode := range map[string]cuda.CaptureMode{"relaxed": cuda.Relaxed, "of the thread": cuda.ThreadLocal, "global": cuda.Global} {
		t.Run(name, func(t *testing.T) {
			r, c := newRig(t)
			x, y := r.alloc(c, mib), r.alloc(c, mib)
			require.NoError(t, c.Fill8(cuda.Whole(y), 9))
			g := r.graph(c, func() {
				tmp := r.alloc(c, mib)
				require.NoError(t, c.Copy(cuda.Whole(tmp), cuda.Whole(x)))
				require.NoError(t, c.Copy(cuda.Whole(y), cuda.Whole(tmp)))
				require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(y)))
				r.free(tmp)
			}, cuda.Mode(mode))
			assert.Equal(t, byte(9), r.read(c, y, 1)[0], "nothing has run")
			held, err := g.HeldBytes(t.Context())
			require.NoError(t, err)
			assert.GreaterOrEqual(t, held, mib)
			require.NoError(t, g.Upload(c))
			for i := range byte(3) {
				require.NoError(t, c.Fill8(cuda.Whole(x), i))
				require.NoError(t, g.Launch(c))
				assert.Equal(t, bytes.Repeat([]byte{i}, 64), r.read(c, y, 64))
			}
			require.NoError(t, g.Close())
			require.NoError(t, g.Close())
			require.ErrorIs(t, g.Launch(c), cuda.ErrGraphClosed)
			require.ErrorIs(t, g.Upload(c), cuda.ErrGraphClosed)
			_, err = g.HeldBytes(t.Context())
			require.ErrorIs(t, err, cuda.ErrGraphClosed)
			r.free(x, y)
		})
	}
}

// Memory that a graph touches is nobody else's until the graph is closed, also where its buffers were freed.
func TestAGraphKeepsFreedBuffers(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	x, y := r.alloc(c, 4*mib), r.alloc(c, 4*mib)
	var inside cuda.Buffer
	g := r.graph(c, func() {
		inside = r.alloc(c, 4*mib)
		require.NoError(t, c.Copy(cuda.Whole(inside), cuda.Whole(x)))
		require.NoError(t, c.Copy(cuda.Whole(y), cuda.Whole(inside)))
	})
	require.NoError(t, c.Fill8(cuda.Whole(x), 5))
	require.NoError(t, g.Launch(c))
	r.sync(c)
	at := map[cudadrv.Ptr]bool{x.Ptr(): true, inside.Ptr(): true}
	r.free(x, inside)
	require.ErrorIs(t, inside.Free(), vram.ErrDoubleFree)
	for range 5 { // all allocate the memory that is left
		_, err := r.dev.Trim(t.Context(), 0)
		require.NoError(t, err)
		var all []cuda.Buffer
		for _, from := range []*cuda.Context{c, d} {
			for range 4 {
				b := r.alloc(from, 4*mib)
				assert.False(t, at[b.Ptr()], "%v is the graph's", b)
				require.NoError(t, from.Fill8(cuda.Whole(b), 1))
				all = append(all, b)
			}
		}
		require.NoError(t, g.Launch(c))
		assert.Equal(t, bytes.Repeat([]byte{5}, 64), r.read(c, y, 64))
		r.sync(c, d)
		r.free(all...)
	}
	held := r.dev.Stats()
	assert.GreaterOrEqual(t, held.PendingBytes, 4*mib, "x waits for the graph's end")
	require.NoError(t, g.Close())
	r.free(y)
	r.sync(c, d)
	_, err := r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	n := r.dev.Stats()
	assert.Zero(t, n.LiveBytes)
	assert.Zero(t, n.ReservedBytes, "%v", n)
}

// Memory that is freed inside a capture is used again there.
func TestACaptureUsesItsMemoryAgain(t *testing.T) {
	r, c := newRig(t)
	g := r.graph(c, func() {
		var last cuda.Buffer
		for i := range 20 {
			b := r.alloc(c, 32*mib)
			require.NoError(t, c.Fill8(cuda.Part(b, 0, mib), byte(i)))
			if i > 0 {
				r.free(last)
			}
			last = b
		}
		r.free(last)
	})
	held, err := g.HeldBytes(t.Context())
	require.NoError(t, err)
	assert.LessOrEqual(t, held, 80*mib, "two at once")
	require.NoError(t, g.Launch(c))
	r.sync(c)
	require.NoError(t, g.Close())
}

// Branches of a capture do not share memory that one of them has freed, since they may run at the same time.
func TestBranchesOfACapture(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	x, y := r.alloc(c, mib), r.alloc(d, mib)
	inner := r.graph(c, func() { require.NoError(t, c.Fill8(cuda.Whole(x), 9)) })
	g := r.graph(c, func() {
		require.NoError(t, c.Fill8(cuda.Whole(x), 1))
		require.NoError(t, d.Wait(c))
		tmp := r.alloc(c, mib)
		require.NoError(t, c.Copy(cuda.Whole(tmp), cuda.Whole(x)))
		addr := tmp.Ptr()
		other := r.alloc(d, mib)
		require.NoError(t, d.Copy(cuda.Whole(other), cuda.Whole(x)))
		r.free(tmp)
		more := r.alloc(d, mib)
		assert.NotEqual(t, addr, more.Ptr())
		require.NoError(t, d.Copy(cuda.Whole(more), cuda.Whole(other)))
		require.NoError(t, d.Copy(cuda.Whole(y), cuda.Whole(more)))
		for _, on := range []*cuda.Context{c, d} { // the driver would break the capture
			for call, err := range map[string]error{
				"cuEventRecord":        second(on.Record()),
				"cuStreamSynchronize":  on.Synchronize(t.Context()),
				"a copy that waits":    cuda.CopyOut(on, make([]byte, 1), y),
				"cuStreamBeginCapture": second(on.Capture(func() error { return nil })),
				"cuGraphLaunch":        inner.Launch(on),
				"cuGraphUpload":        inner.Upload(on),
			} {
				var refused *vram.CaptureError
				require.ErrorAs(t, err, &refused, call)
				assert.Equal(t, vram.CaptureError{Stream: on.Stream().ID(), Call: call}, *refused)
			}
		}
		require.NoError(t, c.Wait(d))
		require.NoError(t, c.Copy(cuda.Whole(x), cuda.Whole(other)))
		r.free(other, more)
	})
	require.NoError(t, c.Fill8(cuda.Whole(x), 0))
	require.NoError(t, d.Fill8(cuda.Whole(y), 0))
	require.NoError(t, g.Launch(c))
	assert.Equal(t, byte(1), r.read(d, y, 1)[0], "after the graph, which has written y")
	require.NoError(t, d.Fill8(cuda.Whole(y), 3))
	require.NoError(t, g.Launch(d))
	assert.Equal(t, byte(1), r.read(c, x, 1)[0])
	require.NoError(t, g.Close())
	require.NoError(t, inner.Close())
	r.free(x, y)
}

// A branch reuses memory that another one has freed after its uses, and no other branch does: the memory of a graph does not
// grow with its steps.
func TestBranchesUseMemoryAgainBehindAJoin(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	first := func(b cuda.Buffer) cuda.Range { return cuda.Part(b, 0, mib) } // more would only take longer
	held := func(steps int) int64 {
		g := r.graph(c, func() {
			for i := range steps {
				x, y := r.alloc(c, 8*mib), r.alloc(c, 4*mib)
				require.NoError(t, c.Fill8(first(x), byte(i)))
				require.NoError(t, d.Wait(c))
				tmp := r.alloc(d, 8*mib)
				require.NoError(t, d.Copy(first(tmp), first(x)))
				require.NoError(t, d.Copy(first(y), first(tmp)))
				r.free(tmp)
				own := r.alloc(c, 8*mib)
				assert.NotEqual(t, tmp.Ptr(), own.Ptr(), "the branches may run at the same time")
				require.NoError(t, c.Copy(first(own), first(x)))
				require.NoError(t, c.Wait(d))
				require.NoError(t, c.Copy(first(x), first(y)))
				r.free(x, y, own)
			}
		})
		bytes, err := g.HeldBytes(t.Context())
		require.NoError(t, err)
		require.NoError(t, g.Launch(c))
		r.sync(c)
		require.NoError(t, g.Close())
		return bytes
	}
	few, many := held(2), held(40)
	t.Logf("held: %d MiB after 2 steps, %d MiB after 40", few/mib, many/mib)
	assert.LessOrEqual(t, many, few)
}

// inEachRole runs f with three captured streams in each order: the one that began the capture is any of them.
func inEachRole(t *testing.T, f func(r *rig, c, d, e *cuda.Context)) {
	t.Helper()
	for _, role := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		r, first := newRig(t)
		all := []*cuda.Context{first, r.context(), r.context()}
		g := r.graph(first, func() {
			require.NoError(t, all[1].Wait(first))
			require.NoError(t, all[2].Wait(first))
			f(r, all[role[0]], all[role[1]], all[role[2]])
			require.NoError(t, first.Wait(all[1]))
			require.NoError(t, first.Wait(all[2]))
		})
		require.NoError(t, g.Launch(first))
		r.sync(first)
		require.NoError(t, g.Close())
	}
}

// The memory of a joined branch is reused at once, but not if the branch has work after the join.
func TestReuseInACaptureIsBehindAllUses(t *testing.T) {
	inEachRole(t, func(r *rig, c, d, e *cuda.Context) {
		x := r.alloc(d, 8*mib)
		require.NoError(t, d.Fill8(cuda.Whole(x), 1))
		require.NoError(t, e.Wait(d))
		require.NoError(t, e.Fill8(cuda.Whole(x), 2))
		require.NoError(t, c.Wait(d))
		at := x.Ptr()
		r.free(x)
		y := r.alloc(c, 8*mib)
		assert.NotEqual(t, at, y.Ptr(), "e has it, and d's free follows the join")
		require.NoError(t, c.Fill8(cuda.Whole(y), 3))
		require.NoError(t, c.Wait(d))
		z := r.alloc(c, 8*mib)
		assert.NotEqual(t, at, z.Ptr(), "e has it")
		require.NoError(t, c.Fill8(cuda.Whole(z), 3))
		require.NoError(t, c.Wait(e))
		again := r.alloc(c, 8*mib)
		assert.Equal(t, at, again.Ptr())
		require.NoError(t, c.Fill8(cuda.Whole(again), 4))
		r.free(y, z, again)
	})
}

// Work that is submitted past the package to the stream that has allocated a buffer is before the free of that.
func TestWorkPastThePackageIsBeforeAFree(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	g := r.graph(c, func() {
		require.NoError(t, d.Wait(c))
		x := r.alloc(d, 8*mib)
		require.NoError(t, c.Wait(d))
		require.NoError(t, r.dev.GPU().MemsetD8Async(x.Ptr(), 1, x.Bytes(), d.Stream().Handle()))
		r.free(x)
		y := r.alloc(c, 8*mib)
		assert.NotEqual(t, x.Ptr(), y.Ptr())
		require.NoError(t, c.Fill8(cuda.Whole(y), 3))
		require.NoError(t, c.Wait(d))
		z := r.alloc(c, 8*mib)
		assert.Equal(t, x.Ptr(), z.Ptr())
		r.free(y, z)
	})
	require.NoError(t, g.Close())
}

// Work of a branch on a buffer that another one has allocated waits for the allocation: the memory may have been in use before. Work
// that is behind it already does not wait again.
func TestABranchIsBehindTheAllocationOfItsBuffers(t *testing.T) {
	inEachRole(t, func(r *rig, c, d, e *cuda.Context) {
		waits := func() uint64 {
			gpu, ok := r.dev.GPU().Inner().(*sim.Device)
			require.True(t, ok)
			return gpu.Counts()["cuStreamWaitEvent"]
		}
		x := r.alloc(c, 8*mib)
		require.NoError(t, c.Fill8(cuda.Whole(x), 1))
		at := x.Ptr()
		r.free(x)
		y := r.alloc(c, 8*mib)
		require.Equal(t, at, y.Ptr())
		before := waits()
		require.NoError(t, d.Fill8(cuda.Whole(y), 2))
		assert.Equal(t, before+1, waits())
		require.NoError(t, d.Fill8(cuda.Whole(y), 3))
		assert.Equal(t, before+1, waits(), "it has waited")
		require.NoError(t, e.Wait(d))
		require.NoError(t, e.Fill8(cuda.Whole(y), 4))
		assert.Equal(t, before+2, waits(), "it follows d, and so c")
		require.NoError(t, c.Wait(e))
		require.NoError(t, c.Fill8(cuda.Whole(y), 5))
		r.free(y)
	})
}

func TestACaptureThatFailsLeavesNothing(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	x := r.alloc(c, mib)
	mine := errors.New("mine")
	_, err := c.Capture(func() error { return mine })
	require.ErrorIs(t, err, mine)
	assert.PanicsWithValue(t, "mine", func() {
		_, _ = c.Capture(func() error {
			b := r.alloc(c, mib)
			require.NoError(t, c.Fill8(cuda.Whole(b), 1))
			r.free(b)
			panic("mine")
		})
	})
	_, err = c.Capture(func() error {
		if err := d.Wait(c); err != nil {
			return err
		}
		return d.Fill8(cuda.Whole(x), 1)
	})
	require.ErrorIs(t, err, cudadrv.CaptureUnjoined)
	for _, one := range []*cuda.Context{c, d} {
		require.NoError(t, one.Fill8(cuda.Whole(x), 1))
		r.sync(one)
	}
	r.free(x)
	_, err = r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.dev.Stats().ReservedBytes)
}

// A thousand captures leave no memory and no stream.
func TestManyCaptures(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, mib)
	for range 200 {
		g := r.graph(c, func() {
			b := r.alloc(c, 4*mib)
			require.NoError(t, c.Fill8(cuda.Whole(b), 1))
			require.NoError(t, c.Copy(cuda.Whole(x), cuda.Part(b, 0, mib)))
			r.free(b)
		})
		require.NoError(t, g.Launch(c))
		require.NoError(t, g.Close())
	}
	r.free(x)
	r.sync(c)
	_, err := r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.dev.Stats().ReservedBytes)
}

// Graphs that share a pool run one after the other, on any stream, and use their memory together.
func TestGraphsShareAPool(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	pool, err := c.NewPool()
	require.NoError(t, err)
	var graphs []*cuda.Graph
	var results []cuda.Buffer
	for i := range byte(4) {
		to := r.alloc(c, mib)
		results = append(results, to)
		graphs = append(graphs, r.graph(c, func() {
			tmp := r.alloc(c, 16*mib)
			require.NoError(t, c.Fill8(cuda.Whole(tmp), i+1))
			require.NoError(t, c.Copy(cuda.Whole(to), cuda.Part(tmp, 0, mib)))
			r.free(tmp)
		}, cuda.Shared(pool)))
	}
	held, err := pool.HeldBytes(t.Context())
	require.NoError(t, err)
	assert.LessOrEqual(t, held, 20*mib)
	for round := range 3 {
		for i, g := range graphs {
			require.NoError(t, g.Launch([]*cuda.Context{c, d}[(i+round)%2]))
		}
	}
	for i, to := range results {
		assert.Equal(t, byte(i+1), r.read(c, to, 1)[0])
	}
	require.NoError(t, pool.Close())
	_, err = c.Capture(func() error { return nil }, cuda.Shared(pool))
	require.ErrorIs(t, err, cuda.ErrGraphClosed)
	_, err = c.Capture(func() error { return nil }, cuda.Shared(new(cuda.Pool)))
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	for _, g := range graphs {
		require.NoError(t, g.Launch(c))
		require.NoError(t, g.Close())
	}
	r.free(results...)
	r.sync(c, d)
	_, err = r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.dev.Stats().ReservedBytes)
}

// Arguments of a kernel are replaced for later launches, and their buffers belong to the graph.
func TestArgumentsOfAGraph(t *testing.T) {
	r, c := newRig(t)
	x, y := r.alloc(c, mib), r.alloc(c, mib)
	g := r.graph(c, func() {
		require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)))
		require.NoError(t, c.Fill8(cuda.Whole(x), 1))
		require.NoError(t, c.Launch(r.scale, cuda.Cover(1, 1), cuda.InOut(x), cuda.Value(float32(1)), cuda.Value(uint32(1))))
	})
	all := g.Kernels()
	require.Len(t, all, 2)
	assert.Equal(t, "scale", all[1].Function.Name())
	require.NoError(t, g.SetArgs(1, cuda.Cover(100, 32), cuda.InOut(y), cuda.Value(float32(1)), cuda.Value(uint32(1))))
	assert.Equal(t, cuda.Cover(100, 32), g.Kernels()[1].Geometry)
	require.ErrorIs(t, g.SetArgs(2, cuda.Cover(1, 1)), cuda.ErrNoKernel)
	require.ErrorIs(t, g.SetArgs(0, cuda.Cover(1, 1)), cuda.ErrArgumentCount)
	require.NoError(t, g.Launch(c))
	r.sync(c)
	at := y.Ptr()
	r.free(y)
	b := r.alloc(c, mib)
	assert.NotEqual(t, at, b.Ptr())
	require.NoError(t, g.Launch(c))
	require.NoError(t, g.Close())
	r.free(x, b)
}

// Close waits for the last launch before the memory goes.
func TestAGraphIsClosedWhileItRuns(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, 4*mib)
	g := r.graph(c, func() { require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x))) })
	r.free(x)
	require.NoError(t, g.Launch(c))
	begun := r.dev.Now()
	require.NoError(t, g.Close())
	assert.Greater(t, r.dev.Now(), begun)
	require.NoError(t, c.Synchronize(context.Background()))
	assert.Empty(t, r.dev.Hazards())
}

// Memory that a hold gets from another stream is not used before the work there that had it.
func TestAGraphIsBehindWorkThatHadItsMemory(t *testing.T) {
	r, c := newRig(t, vramtest.Config(vram.Config{LimitBytes: 64 * mib, Waits: vram.WaitsAlways}))
	d := r.context()
	x := r.alloc(d, 60*mib)
	require.NoError(t, r.dev.GPU().Launch(d.Stream().Handle(), time.Hour))
	require.NoError(t, d.Fill8(cuda.Whole(x), 1))
	r.free(x)
	g := r.graph(c, func() {
		b := r.alloc(c, 50*mib)
		require.NoError(t, c.Fill8(cuda.Whole(b), 2))
		r.free(b)
	})
	require.NoError(t, g.Launch(c))
	r.sync(c)
	require.NoError(t, g.Close())
}

func TestAGraphZeroesItsMemoryAtEachLaunch(t *testing.T) {
	r, c := newRig(t)
	y := r.alloc(c, mib)
	g := r.graph(c, func() {
		b, err := c.AllocZeroed(mib)
		require.NoError(t, err)
		require.NoError(t, c.Copy(cuda.Whole(y), cuda.Whole(b)))
		require.NoError(t, c.Fill8(cuda.Whole(b), 7))
		w, err := c.Workspace(mib)
		require.NoError(t, err)
		require.NoError(t, c.Fill8(cuda.Whole(w), 8))
		r.free(b)
	})
	for range 2 {
		require.NoError(t, c.Fill8(cuda.Whole(y), 1))
		require.NoError(t, g.Launch(c))
		assert.Equal(t, byte(0), r.read(c, y, 1)[0])
	}
	require.NoError(t, g.Close())
	r.free(y)
}

// Memory of a graph is filled with zeros by its node, and once: a second fill would be another node.
func TestMemoryOfAGraphIsFilledOnce(t *testing.T) {
	machine := sim.New(sim.Config{Bytes: true, TotalBytes: 1 << 30})
	dev, err := vram.Open(vram.Config{Driver: machine})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	fills := func() uint64 {
		return machine.Device(0).Counts()["cuMemsetD8Async"] + machine.Device(0).Counts()["cuMemsetD32Async"]
	}
	before := fills()
	g, err := c.Capture(func() error {
		b, err := c.AllocFor(t.Context(), vram.Request{Bytes: mib, Zero: true})
		return errors.Join(err, b.Free())
	})
	require.NoError(t, err)
	assert.Equal(t, before+1, fills())
	require.NoError(t, g.Close())
	require.NoError(t, c.Close())
	require.NoError(t, dev.Close())
}

// They do so where nothing but the pool's memory is common to them.
func TestGraphsShareNothingButAPool(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	pool, err := c.NewPool()
	require.NoError(t, err)
	capture := func() *cuda.Graph {
		return r.graph(c, func() {
			tmp := r.alloc(c, 16*mib)
			require.NoError(t, c.Fill8(cuda.Whole(tmp), 1))
			require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(tmp)))
			r.free(tmp)
		}, cuda.Shared(pool))
	}
	one, two := capture(), capture()
	require.NoError(t, one.Launch(c))
	require.NoError(t, two.Launch(d))
	require.NoError(t, one.Launch(c))
	require.NoError(t, one.Close())
	require.NoError(t, two.Close())
	require.NoError(t, pool.Close())
}

// A buffer that outlives the capture is ordered between launches of the graph and work of others.
func TestResultsOfAGraph(t *testing.T) {
	r, c := newRig(t)
	d, e := r.context(), r.context()
	var result cuda.Buffer
	g := r.graph(c, func() {
		result = r.alloc(c, mib)
		require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.Out(result)))
	})
	for range 3 {
		require.NoError(t, g.Launch(d))
		require.NoError(t, e.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(result)))
	}
	r.free(result)
	r.sync(c, d, e)
	require.NoError(t, g.Close())
}

// Contexts of one stream are one: work of any of them during a capture belongs to the graph.
func TestContextsOfOneStream(t *testing.T) {
	r, c := newRig(t)
	other, err := cuda.NewContext(c.Stream())
	require.NoError(t, err)
	x := r.alloc(c, 8*mib)
	at := x.Ptr()
	g := r.graph(c, func() {
		require.NoError(t, other.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)))
		_, err := other.Capture(func() error { return nil })
		require.ErrorIs(t, err, cuda.ErrCapturing)
		require.ErrorIs(t, other.Synchronize(t.Context()), cuda.ErrCapturing)
	})
	require.Len(t, g.Kernels(), 1)
	r.free(x)
	b := r.alloc(c, 8*mib)
	assert.NotEqual(t, at, b.Ptr())
	require.NoError(t, g.Launch(c))
	require.NoError(t, g.Close())
	r.free(b)
	require.NoError(t, other.Close())
}

// A module whose kernels a graph has is not unloaded, and an event from outside is no part of a graph.
func TestWhatAGraphNeedsStays(t *testing.T) {
	r, c := newRig(t)
	m, err := c.LoadModule([]byte(ptx))
	require.NoError(t, err)
	f, err := m.Function("empty")
	require.NoError(t, err)
	e, err := r.context().Record()
	require.NoError(t, err)
	g := r.graph(c, func() {
		require.NoError(t, c.Launch(f, cuda.Cover(1, 1)))
		require.ErrorIs(t, c.WaitEvent(e), cuda.ErrCapturing)
	})
	require.NoError(t, e.Close())
	require.ErrorIs(t, m.Unload(), cuda.ErrModuleInUse)
	require.NoError(t, g.Launch(c))
	require.NoError(t, g.Close())
	r.sync(c)
	require.NoError(t, m.Unload())
}

// Printed handles identify the object and show no internals.
func TestHandlesAsText(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, mib)
	m, err := c.LoadModule([]byte(ptx))
	require.NoError(t, err)
	e, err := c.Record()
	require.NoError(t, err)
	g := r.graph(c, func() { require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x))) })
	assert.Equal(t, "graph of 1 kernel", fmt.Sprint(g))
	assert.Equal(t, "[{kernel touch {(1,1,1) (1,1,1) 0}}]", fmt.Sprint(g.Kernels()))
	assert.Regexp(t, "^event 0x[0-9a-f]+$", fmt.Sprint(e))
	assert.Regexp(t, "^module 0x[0-9a-f]+$", fmt.Sprint(m))
	require.NoError(t, errors.Join(g.Close(), e.Close(), m.Unload()))
	assert.Equal(t, "graph of 1 kernel, closed", g.String())
	assert.Regexp(t, "^event 0x[0-9a-f]+, closed$", e.String())
	assert.Regexp(t, "^module 0x[0-9a-f]+, unloaded$", m.String())
	r.free(x)
	for _, none := range []fmt.Stringer{&cuda.Graph{}, (*cuda.Graph)(nil), &cuda.Function{}, (*cuda.Function)(nil), &cuda.Module{}, (*cuda.Module)(nil), &cuda.Event{}, (*cuda.Event)(nil)} {
		assert.Contains(t, none.String(), "no ")
	}
}

// A batch inside a capture comes from the hold, whole or not at all; the stream itself refuses one.
func TestABatchInACaptureComesFromTheHold(t *testing.T) {
	r, c := newRig(t)
	const count = 64
	sizes := make([]int64, count)
	for i := range sizes {
		sizes[i] = mib
	}
	all := make([]cuda.Buffer, count)
	before := r.dev.Stats().LiveBytes
	g, err := c.Capture(func() error {
		for _, err := range []error{
			c.Stream().AllocBatch(all, sizes),
			func() error {
				_, err := c.Stream().AllocBatchFor(r.Context(), vram.BatchRequest{Bytes: sizes})
				return err
			}(),
		} {
			var captured *vram.CaptureError
			require.ErrorAs(t, err, &captured)
			require.ErrorContains(t, err, "Stream.AllocBatch may not be part of it")
		}
		assert.Zero(t, all[0])
		for i := range 3 {
			for size, want := range map[int64]error{-1: vram.ErrNegative, math.MinInt64: vram.ErrNegative, 1 << 60: vram.ErrTooLarge, math.MaxInt64: vram.ErrTooLarge} {
				sizes := []int64{1, 1, 1}
				sizes[i] = size
				var refused *vram.BatchError
				err := c.AllocBatch(all[:3], sizes)
				require.ErrorAs(t, err, &refused, size)
				require.ErrorIs(t, err, want, size)
				assert.Equal(t, [2]int{i, 1}, [2]int{refused.Index, refused.Count})
				assert.Zero(t, [3]cuda.Buffer(all))
			}
		}
		for range 4 * count { // a refused batch leaves nothing
			require.ErrorIs(t, c.AllocBatch(all[:3], []int64{mib, mib, -1}), vram.ErrNegative)
		}
		var length *vram.LengthError
		require.ErrorAs(t, c.AllocBatch(all[:2], sizes), &length)
		for range 3 { // the memory is reused
			require.NoError(t, c.AllocBatch(all, sizes))
			for _, b := range all {
				require.NoError(t, c.Launch(r.touch, oneThread, cuda.Out(b)))
			}
			require.NoError(t, c.FreeBatch(all))
		}
		return nil
	})
	require.NoError(t, err)
	held, err := g.HeldBytes(r.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, held, count*mib)
	assert.Less(t, held, 2*count*mib)
	require.NoError(t, g.Launch(c))
	require.NoError(t, g.Close())
	g, err = c.Capture(func() error {
		large := r.dev.Info().TotalBytes / 4 * 3
		err := c.AllocBatch(all[:3], []int64{1, large, large})
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		_, refused := errors.AsType[*vram.BatchError](err)
		assert.False(t, refused, "each of the sizes is right: %v", err)
		assert.Zero(t, [3]cuda.Buffer(all))
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	assert.Equal(t, before, r.dev.Stats().LiveBytes)
	require.NoError(t, c.AllocBatch(all, sizes))
	require.NoError(t, c.FreeBatch(all))
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.AllocBatch(all, sizes), cuda.ErrNotOpen)
	require.ErrorIs(t, c.FreeBatch(all), cuda.ErrNotOpen)
}
