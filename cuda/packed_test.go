package cuda_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/vramtest"
)

// pack packs the parameters of fill in optionalPTX.
func pack(to, bias cuda.Buffer, index uint32, x, y float32) []byte {
	all := binary.LittleEndian.AppendUint64(nil, uint64(to.Ptr()))
	all = binary.LittleEndian.AppendUint64(all, uint64(bias.Ptr()))
	all = binary.LittleEndian.AppendUint32(all, index)
	all = binary.LittleEndian.AppendUint32(all, math.Float32bits(x))
	return binary.LittleEndian.AppendUint32(all, math.Float32bits(y))
}

// A packed launch has the effect of a launch with arguments, also in a graph.
func TestPackedLaunchesRun(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Kernels())
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	fill := kernelsOf(t, c, optionalPTX)("fill")
	to, err := c.Alloc(16)
	require.NoError(t, err)
	bias, err := c.Alloc(4)
	require.NoError(t, err)
	require.NoError(t, cuda.CopyIn(c, bias, []float32{100}))
	require.NoError(t, c.Fill8(cuda.Whole(to), 0))
	one := cuda.Cover(1, 1)
	packed := pack(to, bias, 0, 1, 2)
	require.NoError(t, c.LaunchPacked(fill, one, packed, cuda.Out(to), cuda.In(bias)))
	clear(packed) // it was read
	require.NoError(t, c.LaunchPacked(fill, one, append(pack(to, cuda.Buffer{}, 1, 3, 4), make([]byte, 4)...), cuda.Out(to), cuda.OrNull(cuda.Buffer{}, cuda.In)))
	g, err := c.Capture(func() error {
		return c.LaunchPacked(fill, one, pack(to, bias, 2, 5, 6), cuda.Out(to), cuda.In(bias))
	})
	require.NoError(t, err)
	require.NoError(t, g.Launch(c))
	require.NoError(t, g.SetArg(0, 1, cuda.Null()))
	type place struct {
		Index int32
		X, Y  float32
	}
	require.NoError(t, g.SetArg(0, 2, cuda.Struct(place{3, 7, 8})))
	require.NoError(t, g.Launch(c))
	got := make([]float32, 4)
	require.NoError(t, cuda.CopyOut(c, got, to))
	assert.Equal(t, []float32{103, 7, 111, 15}, got)
	require.NoError(t, g.Close())
	require.NoError(t, to.Free())
	require.NoError(t, bias.Free())
	require.NoError(t, c.Close())
}

// Nothing is submitted where the parameters have the wrong size, or a buffer is wrong.
func TestPackedLaunchesAreRefused(t *testing.T) {
	r, c := newRig(t)
	other, d := newRig(t)
	x, foreign, freed := r.alloc(c, 4096), other.alloc(d, 4096), r.alloc(c, 4096)
	r.free(freed)
	one := cuda.Cover(1, 1)
	before := r.dev.GPU().Now()
	for _, size := range []int{0, 15, 16, 31, 32, 4096, 4097} {
		err := c.LaunchPacked(r.scale, one, make([]byte, size), cuda.InOut(x))
		if size >= 16 && size <= 31 {
			require.NoError(t, err, size)
			continue
		}
		require.ErrorIs(t, err, cuda.ErrPackedBytes, size)
		var refused *cuda.ArgumentError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, cuda.ArgumentError{Kernel: "scale", Index: -1, Err: cuda.ErrPackedBytes, Bytes: int64(size), Want: 16}, *refused)
	}
	require.EqualError(t, c.LaunchPacked(r.scale, one, make([]byte, 8)), "cuda: kernel scale has 16 bytes of parameters, not 8")
	require.NoError(t, c.LaunchPacked(r.empty, one, nil))
	wide := kernelsOf(t, c, ".visible .entry wide(.param .b8 x[5000]) { ret; }\n")("wide")
	require.ErrorIs(t, c.LaunchPacked(wide, one, make([]byte, 5000)), cuda.ErrPackedBytes)
	r.sync(c)
	assert.Less(t, before, r.dev.GPU().Now())
	before = r.dev.GPU().Now()

	packed := make([]byte, 16)
	for name, tt := range map[string]struct {
		arg  cuda.Arg
		want error
	}{
		"freed": {cuda.In(freed), cuda.ErrNotLive}, "zero": {cuda.In(cuda.Buffer{}), cuda.ErrNotLive}, "foreign": {cuda.In(foreign), cuda.ErrForeign},
		"a number": {cuda.Value(uint64(1)), cuda.ErrNotBuffer}, "none": {cuda.Arg{}, cuda.ErrNotBuffer}, "an address": {cuda.Value(x.Ptr()), cuda.ErrNotBuffer},
	} {
		err := c.LaunchPacked(r.scale, one, packed, cuda.In(x), tt.arg)
		require.ErrorIs(t, err, tt.want, name)
		var refused *cuda.ArgumentError
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, 1, refused.Index, name)
	}
	var outside *cuda.RangeError
	require.ErrorAs(t, c.LaunchPacked(r.scale, one, packed, cuda.In(x).Of(4000, 97)), &outside)
	require.ErrorIs(t, c.LaunchPacked(nil, one, packed), cuda.ErrNotOpen)
	require.ErrorIs(t, (*cuda.Context)(nil).LaunchPacked(r.scale, one, packed), cuda.ErrNotOpen)
	require.ErrorIs(t, c.LaunchPacked(other.scale, one, packed), cuda.ErrForeign)
	r.sync(c)
	assert.Equal(t, before, r.dev.GPU().Now(), "no kernel has run")
	r.free(x)
	other.free(foreign)
}

// A packed launch waits for the work of other streams on its buffers, they wait for it, and a graph keeps the memory.
func TestPackedLaunchesAreInOrder(t *testing.T) {
	r, c := newRig(t)
	d := r.context()
	x, y := r.alloc(d, mib), r.alloc(c, 64)
	packed := binary.LittleEndian.AppendUint64(nil, uint64(x.Ptr()))
	one := cuda.Cover(1, 1)
	require.NoError(t, r.dev.GPU().Launch(d.Stream().Handle(), time.Hour))
	require.NoError(t, d.Launch(r.touch, one, cuda.Out(x)))
	require.NoError(t, c.LaunchPacked(r.touch, one, packed, cuda.InOut(x)))
	require.NoError(t, d.Launch(r.touch, one, cuda.InOut(x)))
	r.sync(c)
	assert.GreaterOrEqual(t, r.dev.GPU().Now(), time.Hour)
	g := r.graph(c, func() { require.NoError(t, c.LaunchPacked(r.touch, one, packed, cuda.InOut(x))) })
	old := x.Ptr()
	r.free(x)
	require.NoError(t, g.Launch(c))
	again := r.alloc(d, mib)
	assert.NotEqual(t, old, again.Ptr(), "the graph has it")
	r.sync(c, d)
	require.NoError(t, g.Close())
	r.free(again, y)
	assert.Empty(t, r.dev.Hazards())
}

// The checker sees the buffers that a packed launch declares, in a graph too, until SetArgs.
func TestPackedLaunchesAreChecked(t *testing.T) {
	r, c := newRig(t, vramtest.Expected())
	d := r.context()
	x := r.alloc(d, mib)
	packed := binary.LittleEndian.AppendUint64(nil, uint64(x.Ptr()))
	g := r.graph(c, func() { require.NoError(t, c.LaunchPacked(r.touch, cuda.Cover(1, 1), packed, cuda.InOut(x))) })
	require.NoError(t, g.SetArg(0, 0, cuda.Null()))
	require.NoError(t, g.Launch(c))
	require.NoError(t, r.dev.GPU().MemsetD8Async(x.Ptr(), 1, mib, d.Stream().Handle()))
	found := r.dev.Hazards()
	require.Len(t, found, 1)
	assert.Equal(t, hazard.Race, found[0].Kind)
	r.sync(c, d)
	require.NoError(t, g.SetArgs(0, cuda.Cover(1, 1), cuda.Null()))
	require.NoError(t, g.Launch(c))
	require.NoError(t, r.dev.GPU().MemsetD8Async(x.Ptr(), 1, mib, d.Stream().Handle()))
	assert.Len(t, r.dev.Hazards(), 1)
	require.NoError(t, g.Close())
	r.free(x)
}
