package cuda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// SetArg changes one argument: the others stay, and so does the geometry.
func TestOneArgumentOfAGraphChanges(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Kernels())
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	fill := kernelsOf(t, c, optionalPTX)("fill")
	type place struct {
		Index int32
		X, Y  float32
	}
	alloc := func(values ...float32) cuda.Buffer {
		t.Helper()
		b, err := c.Alloc(int64(4 * len(values)))
		require.NoError(t, err)
		require.NoError(t, cuda.CopyIn(c, b, values))
		return b
	}
	to, bias, other := alloc(0, 0, 0, 0), alloc(100), alloc(1000)
	g, err := c.Capture(func() error {
		return c.Launch(fill, cuda.Cover(1, 1), cuda.Out(to), cuda.In(bias), cuda.Struct(place{0, 1, 1}))
	})
	require.NoError(t, err)
	for i, change := range []func() error{
		func() error { return nil },
		func() error { return g.SetArg(0, 2, cuda.Struct(place{1, 2, 2})) },
		func() error { return g.SetArg(0, 1, cuda.In(other)) },
		func() error { return g.SetArg(0, 2, cuda.Struct(place{2, 3, 3})) },
		func() error { return g.SetArg(0, 1, cuda.Null()) },
		func() error { return g.SetArg(0, 2, cuda.Struct(place{3, 4, 4})) },
	} {
		require.NoError(t, change(), i)
		require.NoError(t, g.Launch(c), i)
	}
	got := make([]float32, 4)
	require.NoError(t, cuda.CopyOut(c, got, to))
	assert.Equal(t, []float32{102, 1004, 6, 8}, got)
	assert.Equal(t, cuda.Cover(1, 1), g.Kernels()[0].Geometry)
	require.NoError(t, g.Close())
	for _, b := range []cuda.Buffer{to, bias, other} {
		require.NoError(t, b.Free())
	}
	require.NoError(t, c.Close())
}

// A refused argument changes nothing.
func TestOneArgumentIsRefused(t *testing.T) {
	r, c := newRig(t)
	x, freed := r.alloc(c, mib), r.alloc(c, mib)
	r.free(freed)
	g := r.graph(c, func() {
		require.NoError(t, c.Launch(r.scale, cuda.Cover(1, 1), cuda.InOut(x), cuda.Value(float32(1)), cuda.Value(uint32(1))))
	})
	for name, tt := range map[string]struct {
		parameter int
		arg       cuda.Arg
		want      error
	}{
		"a type":  {1, cuda.Value(int32(1)), cuda.ErrArgumentType},
		"a size":  {2, cuda.Value(uint64(1)), cuda.ErrArgumentSize},
		"freed":   {0, cuda.In(freed), cuda.ErrNotLive},
		"none":    {0, cuda.Arg{}, cuda.ErrArgumentSize},
		"past":    {3, cuda.Value(uint32(1)), cuda.ErrNoParameter},
		"before":  {-1, cuda.Value(uint32(1)), cuda.ErrNoParameter},
		"a range": {0, cuda.In(x).Of(1, mib), nil},
	} {
		err := g.SetArg(0, tt.parameter, tt.arg)
		var refused *cuda.ArgumentError
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, []any{"scale", tt.parameter}, []any{refused.Kernel, refused.Index}, name)
		if tt.want != nil {
			require.ErrorIs(t, err, tt.want, name)
		}
	}
	require.EqualError(t, g.SetArg(0, 3, cuda.Null()), "cuda: argument 3 of kernel scale: the kernel has no such parameter")
	require.ErrorIs(t, g.SetArg(1, 0, cuda.InOut(x)), cuda.ErrNoKernel)
	require.ErrorIs(t, g.SetArg(-1, 0, cuda.InOut(x)), cuda.ErrNoKernel)
	require.NoError(t, g.Launch(c))
	r.sync(c)
	frozen := r.alloc(c, mib)
	require.NoError(t, c.Freeze(frozen))
	adding := r.graph(c, func() {
		require.NoError(t, c.Launch(r.add, cuda.Cover(1, 1), cuda.Out(x), cuda.In(x), cuda.In(x), cuda.Value(uint32(1))))
	})
	for parameter := range 3 {
		var refused *cuda.ArgumentError
		err := adding.SetArg(0, parameter, cuda.InOut(frozen))
		require.ErrorIs(t, err, cuda.ErrFrozen)
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, parameter, refused.Index)
	}
	require.NoError(t, adding.Launch(c))
	require.NoError(t, adding.Close())
	r.free(frozen)
	require.NoError(t, g.Close())
	require.ErrorIs(t, g.SetArg(0, 0, cuda.InOut(x)), cuda.ErrGraphClosed)
	require.ErrorIs(t, (*cuda.Graph)(nil).SetArg(0, 0, cuda.InOut(x)), cuda.ErrNotOpen)
	r.free(x)
}

// A driver that refuses the change leaves the graph its argument, and nothing keeps the new one's memory.
func TestTheDriverRefusesOneArgument(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	d := r.context()
	x, y := r.alloc(d, mib), r.alloc(d, mib)
	g, err := c.Capture(func() error { return c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)) })
	require.NoError(t, err)
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuGraphExecKernelNodeSetParams", Count: 1, Result: cudadrv.InvalidValue}))
	err = g.SetArg(0, 0, cuda.InOut(y))
	require.ErrorIs(t, err, cudadrv.InvalidValue)
	var refused *cuda.LaunchError
	require.ErrorAs(t, err, &refused)
	require.NoError(t, y.Free())
	_, err = r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.dev.Stats().PendingBytes)
	require.NoError(t, g.Launch(c))
	require.NoError(t, g.SetArg(0, 0, cuda.InOut(x)))
	require.NoError(t, g.Close())
	require.NoError(t, x.Free())
}

// The graph keeps the memory of each argument as long as it has it, and of no other; the launch waits for the streams of the
// arguments that it has.
func TestArgumentsAreKeptOneByOne(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	add := func(args ...cuda.Arg) []cuda.Arg { return append(args, cuda.Value(uint32(1))) }
	x := r.alloc(c, mib)
	g := r.graph(c, func() {
		require.NoError(t, c.Launch(r.add, cuda.Cover(1, 1), add(cuda.Out(x), cuda.In(x), cuda.In(x))...))
	})
	pending := func() int64 {
		t.Helper()
		r.sync(c, d)
		_, err := r.dev.Trim(t.Context(), 0)
		require.NoError(t, err)
		return r.dev.Stats().PendingBytes
	}
	set := func(parameter int, bytes int64) {
		t.Helper()
		b := r.alloc(d, bytes)
		require.NoError(t, g.SetArg(0, parameter, cuda.In(b)))
		require.NoError(t, g.Launch(c))
		r.free(b)
	}
	set(1, 2*mib)
	set(2, 4*mib)
	assert.Equal(t, 6*mib, pending())
	for range 50 {
		set(1, 8*mib)
		require.NoError(t, g.Launch(c))
		r.sync(c, d)
	}
	require.NoError(t, g.SetArg(0, 1, cuda.In(x)))
	require.NoError(t, g.Launch(c))
	assert.Equal(t, 4*mib, pending(), "the other argument")
	a, b := r.alloc(d, 2*mib), r.alloc(d, 8*mib)
	require.NoError(t, g.SetArgs(0, cuda.Cover(1, 1), add(cuda.Out(x), cuda.In(a), cuda.In(b))...))
	r.free(a, b)
	assert.Equal(t, 10*mib, pending())
	require.NoError(t, g.SetArg(0, 1, cuda.Null()))
	require.NoError(t, g.SetArg(0, 2, cuda.Null()))
	assert.Equal(t, 10*mib, pending(), "the graph has the first argument of the call")
	require.NoError(t, g.SetArg(0, 0, cuda.Out(x)))
	assert.Zero(t, pending())
	require.NoError(t, r.dev.GPU().Launch(d.Stream().Handle(), time.Hour))
	before := r.dev.GPU().Now()
	require.NoError(t, g.Launch(c))
	r.sync(c)
	assert.Less(t, r.dev.GPU().Now()-before, time.Hour, "d has none of the arguments")
	r.sync(d)
	require.NoError(t, g.Close())
	r.free(x)
}

// The checker knows the argument that is new, and the one that is not.
func TestOneArgumentIsChecked(t *testing.T) {
	for argument := range 2 {
		r, c := newRig(t, vramtest.Expected())
		d := r.context()
		x, y, z := r.alloc(c, mib), r.alloc(d, mib), r.alloc(d, mib)
		g := r.graph(c, func() {
			require.NoError(t, c.Launch(r.add, cuda.Cover(1, 1), cuda.Out(x), cuda.In(x), cuda.In(x), cuda.Value(uint32(1))))
		})
		require.NoError(t, g.SetArg(0, 1, cuda.In(y)))
		require.NoError(t, g.SetArg(0, 2, cuda.In(z)))
		require.NoError(t, g.Launch(c))
		require.Empty(t, r.dev.Hazards())
		require.NoError(t, r.dev.GPU().MemsetD8Async([]cuda.Buffer{y, z}[argument].Ptr(), 1, mib, d.Stream().Handle()))
		found := r.dev.Hazards()
		require.Len(t, found, 1)
		assert.Equal(t, hazard.Race, found[0].Kind)
		require.NoError(t, g.Close())
		r.free(x, y, z)
	}
}
