package tensor_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

func TestCopiesBetweenViews(t *testing.T) {
	_, c := newRig(t)
	require.NoError(t, tensor.Scoped(c, func(s *tensor.Scope) error {
		x := must(tensor.From(s, count[int16](12), 3, 4))(t)
		y := must(tensor.Zeros(s, tensor.Int16, 4, 3))(t)
		require.NoError(t, tensor.Copy(s, y, must(x.Transpose(0, 1))(t)))
		sees[int16](t, y, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11)
		require.NoError(t, tensor.Copy(s, must(y.Narrow(1, 1, 2))(t), must(must(x.Index(0, 2))(t).Reshape(4, 1))(t)))
		sees[int16](t, y, 0, 8, 8, 1, 9, 9, 2, 10, 10, 3, 11, 11)
		packed := must(tensor.Contiguous(s, must(x.Slice(1, 3, -1, -2))(t)))(t)
		assert.True(t, packed.Layout().Contiguous())
		sees[int16](t, packed, 3, 1, 7, 5, 11, 9)
		assert.Same(t, packed, must(tensor.Contiguous(s, packed))(t))
		return nil
	}))
}

// Source and destination have a common storage, and places.
func TestCopiesWithinAStorage(t *testing.T) {
	r, c := newRig(t)
	x := must(tensor.From(c, count[int32](6)))(t)
	require.NoError(t, tensor.Copy(c, must(x.Narrow(0, 1, 5))(t), must(x.Narrow(0, 0, 5))(t)))
	sees[int32](t, x, 0, 0, 1, 2, 3, 4)
	require.NoError(t, tensor.Copy(c, x, must(x.Slice(0, 5, -1, -1))(t)))
	sees[int32](t, x, 4, 3, 2, 1, 0, 0)
	require.NoError(t, tensor.Copy(c, x, x))
	square := must(x.Reshape(2, 3))(t)
	require.NoError(t, tensor.Copy(c, square, must(square.Index(0, 1))(t)))
	sees[int32](t, x, 1, 0, 0, 1, 0, 0)
	over := must(tensor.Over(c, must(x.Buffer())(t), tensor.Int32, x.Layout()))(t)
	require.NoError(t, tensor.Write(x, count[int32](6)))
	require.NoError(t, tensor.Copy(c, must(over.Narrow(0, 1, 5))(t), must(x.Narrow(0, 0, 5))(t)))
	sees[int32](t, x, 0, 0, 1, 2, 3, 4)
	require.NoError(t, x.Free())
	assert.Zero(t, r.liveBytes())
}

// Work on another stream's tensors is in order without a word of the caller.
func TestCopiesBetweenStreams(t *testing.T) {
	r, a := newRig(t)
	b := r.context()
	x, y := must(tensor.From(a, count[int32](12), 3, 4))(t), must(tensor.Zeros(b, tensor.Int32, 4, 3))(t)
	for range 3 {
		require.NoError(t, tensor.Copy(b, y, must(x.Transpose(0, 1))(t)))
		require.NoError(t, tensor.Copy(a, x, must(y.Transpose(0, 1))(t)))
		require.NoError(t, tensor.Fill(b, must(x.Index(0, 0))(t), int32(5)))
	}
	sees[int32](t, x, 5, 5, 5, 5, 4, 5, 6, 7, 8, 9, 10, 11)
	require.NoError(t, x.Free())
	require.NoError(t, y.Free())
	assert.Empty(t, r.dev.Hazards())
}

// A view of few elements that lie far apart is packed on the device, and not read with all that is between.
func TestWideViewsAreRead(t *testing.T) {
	_, c := newRig(t)
	x := must(tensor.From(c, count[int64](1<<16), 256, 256))(t)
	column := must(x.Index(1, 3))(t)
	got := must(tensor.Read[int64](column))(t)
	for i, v := range got {
		require.Equal(t, int64(256*i+3), v)
	}
	require.NoError(t, tensor.Write(column, make([]int64, 256)))
	require.NoError(t, tensor.Fill(c, must(x.Slice(0, 1, 256, 2))(t), int64(1<<40)))
	all := must(tensor.Read[int64](x))(t)
	for i, v := range all {
		switch {
		case i/256%2 == 1:
			require.Equal(t, int64(1<<40), v)
		case i%256 == 3:
			require.Zero(t, v)
		default:
			require.Equal(t, int64(i), v)
		}
	}
	_, err := c.Capture(func() error {
		_, err := tensor.Read[int64](column)
		return err
	})
	require.ErrorIs(t, err, cuda.ErrCapturing)
	require.NoError(t, x.Free())
}

// counted returns the calls of the driver that a function makes, of those that copy.
func counted(t *testing.T, faults *fault.Driver, f func() error) map[string]int {
	t.Helper()
	calls := map[string]int{}
	faults.SetBefore(func(function string) {
		if strings.HasPrefix(function, "cuMemcpy") {
			calls[function]++
		}
	})
	require.NoError(t, f())
	faults.SetBefore(nil)
	return calls
}

// A read takes one copy to the host. The device packs before where the elements lie in more than 64 KiB and more than four times
// their bytes.
func TestCopiesOfAReadView(t *testing.T) {
	var faults *fault.Driver
	_, c := newRig(t, vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
		faults = fault.Wrap(inner)
		return faults
	}))
	const most = 64 << 10
	x := must(tensor.From(c, make([]uint8, 4*most), 4*most))(t)
	for _, p := range []struct {
		end, step int // of a slice from 0
		packs     bool
	}{
		{4 * most, 1, false},
		{most + 4, 4, false}, // as many bytes as four times the elements, less three
		{most, 1024, false},  // in 64 KiB
		{most + 1, 1024, true},
		{4 * most, 5, true},
	} {
		view := must(x.Slice(0, 0, p.end, p.step))(t)
		calls := counted(t, faults, func() error { _, err := tensor.Read[uint8](view); return err })
		assert.Equal(t, 1, calls["cuMemcpyDtoHAsync"], "%+v: %v", p, calls)
		assert.Equal(t, p.packs, len(calls) > 1, "%+v: %v", p, calls)

		g, err := c.Capture(func() error {
			during := counted(t, faults, func() error {
				_, err := tensor.Read[uint8](view)
				require.ErrorIs(t, err, cuda.ErrCapturing)
				return nil
			})
			assert.Empty(t, during, "%+v: the graph gets nothing of a read that is refused", p)
			return nil
		})
		if err == nil {
			require.NoError(t, g.Close())
		}
	}
	require.NoError(t, x.Free())
}

// Rows whose distance is above the driver's limit, which is in bytes, are copied one by one.
func TestRowsThatLieFarApart(t *testing.T) {
	var faults *fault.Driver
	_, c := newRig(t, vramtest.Machine(sim.Config{TotalBytes: 16 << 30}), vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
		faults = fault.Wrap(inner)
		return faults
	}))
	const limit = math.MaxInt32 / 4 // of elements
	for columns, want := range map[int]map[string]int{limit: {"cuMemcpy2DAsync": 1}, limit + 1: {"cuMemcpyDtoDAsync": 3}} {
		x, y := must(tensor.New(c, tensor.Float32, 3, columns))(t), must(tensor.New(c, tensor.Float32, 3, 10))(t)
		assert.Equal(t, want, counted(t, faults, func() error { return tensor.Copy(c, y, must(x.Narrow(1, 5, 10))(t)) }), columns)
		require.NoError(t, errors.Join(x.Free(), y.Free()))
	}
}

// Copies within a storage take a stage, and thus a copy more, where the two views share elements, and only there.
func TestCopiesWithinAStorageThatTakeAStage(t *testing.T) {
	var faults *fault.Driver
	r, c := newRig(t, vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
		faults = fault.Wrap(inner)
		return faults
	}))
	x := must(tensor.From(c, count[int32](8)))(t)
	part := func(first, length int) *tensor.Tensor { return must(x.Narrow(0, first, length))(t) }
	for name, v := range map[string]struct {
		dst, src *tensor.Tensor
		copies   int
		stages   uint64
	}{
		"apart": {part(0, 4), part(4, 4), 1, 0}, "the other way": {part(4, 4), part(0, 4), 1, 0}, "the same": {part(2, 4), part(2, 4), 0, 0},
		"shared": {part(0, 5), part(3, 5), 2, 1}, "a broadcast": {part(0, 4), part(5, 1), 3, 0},
	} {
		before := r.dev.Stats().AllocCount
		calls := counted(t, faults, func() error { return tensor.Copy(c, v.dst, v.src) })
		assert.Equal(t, v.copies, calls["cuMemcpyDtoDAsync"], "%s: %v", name, calls)
		assert.Equal(t, v.stages, r.dev.Stats().AllocCount-before, name)
	}
	require.NoError(t, x.Free())
}

func TestTensorsMoveBetweenDevices(t *testing.T) {
	set, err := vram.OpenAll(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Devices: 2})})
	require.NoError(t, err)
	var all []*cuda.Context
	for _, dev := range set.Devices() {
		all = append(all, must(cuda.NewContext(must(dev.NewStream())(t)))(t))
	}
	require.Len(t, all, 2)
	x := must(tensor.From(all[0], count[float32](6), 2, 3))(t)
	y := must(tensor.To(all[1], x))(t)
	assert.Equal(t, "float32[2 3] on GPU 1", y.String())
	sees(t, y, count[float32](6)...)
	z := must(tensor.To(all[1], must(x.Transpose(0, 1))(t)))(t)
	sees(t, z, float32(0), 3, 1, 4, 2, 5)
	same := must(tensor.To(all[0], must(x.Index(0, 1))(t)))(t)
	sees(t, same, float32(3), 4, 5)
	require.ErrorIs(t, tensor.Copy(all[0], x, y), cuda.ErrForeign)
	for _, one := range []*tensor.Tensor{x, y, z, same} {
		require.NoError(t, one.Free())
	}
	for _, c := range all {
		require.NoError(t, c.Close())
	}
	for _, dev := range set.Devices() {
		assert.Zero(t, dev.Stats().LiveBytes)
	}
	require.NoError(t, set.Close())
}
