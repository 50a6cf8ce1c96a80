package ops_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// rig is a device with a context, its operations and a scope.
type rig struct {
	testing.TB

	dev    *vram.Device
	c      *cuda.Context
	o      ops.Ops
	s      *tensor.Scope
	random *rand.Rand
	zeroed *[]*tensor.Tensor // that were made
}

func newRig(tb testing.TB) *rig {
	tb.Helper()
	return newRigWith(tb, open(tb))
}

func newRigOn(tb testing.TB, driver cudadrv.Driver, with ...kernel.Option) *rig {
	tb.Helper()
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, dev.Close()) })
	return newRigWith(tb, dev, with...)
}

// newRigWith is a rig on a device, which the caller closes.
func newRigWith(tb testing.TB, dev *vram.Device, with ...kernel.Option) *rig {
	tb.Helper()
	stream, err := dev.NewStream()
	require.NoError(tb, err)
	r := &rig{TB: tb, dev: dev, random: rand.New(rand.NewPCG(1, 2)), zeroed: new([]*tensor.Tensor)}
	r.c, err = cuda.NewContext(stream)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, r.c.Close()) })
	r.o, err = ops.New(r.c, with...)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		assert.NoError(tb, r.c.Synchronize(context.Background()))
		assert.NoError(tb, r.o.Close())
	})
	r.s, err = tensor.NewScope(r.c)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, r.s.Close()) })
	return r
}

// in is the rig in a subtest.
func (r *rig) in(t *testing.T) *rig {
	t.Helper()
	part := *r
	part.TB = t
	return &part
}

// array is the values of a tensor on the host.
type array struct {
	shape  []int
	values []float64
}

// newArray are numbers that f makes.
func newArray(shape []int, f func() float64) array {
	a := array{shape: shape, values: make([]float64, count(shape))}
	for i := range a.values {
		a.values[i] = f()
	}
	return a
}

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// index is the place of an index of a shape to which the array is broadcast.
func (a array) index(index []int) int {
	at := 0
	for d, n := range a.shape {
		i := index[len(index)-len(a.shape)+d]
		if n == 1 {
			i = 0
		}
		at = at*n + i
	}
	return at
}

// each calls f with each index of a shape.
func each(shape []int, f func(index []int)) {
	index := make([]int, len(shape))
	for range count(shape) {
		f(index)
		for d, n := range slices.Backward(shape) {
			if index[d]++; index[d] < n {
				break
			}
			index[d] = 0
		}
	}
}

// length returns a length of a dimension: none, one, a prime, or a neighbour of a power of two.
func (r *rig) length() int {
	return []int{0, 1, 1, 2, 3, 5, 7, 8, 9, 13, 16, 31, 32, 33}[r.random.IntN(14)]
}

// shape is one of few elements.
func (r *rig) shape(rank int) []int {
	for {
		shape := make([]int, rank)
		for d := range shape {
			shape[d] = r.length()
		}
		if count(shape) < 3000 {
			return shape
		}
	}
}

// part is a shape that is broadcast to another one.
func (r *rig) part(shape []int) []int {
	part := slices.Clone(shape[r.random.IntN(len(shape)+1):])
	for d := range part {
		if r.random.IntN(4) == 0 {
			part[d] = 1
		}
	}
	return part
}

// tensor has the values of an array, in a layout that view chooses.
func (r *rig) tensor(a array) *tensor.Tensor {
	r.Helper()
	t := r.view(tensor.Float32, a.shape)
	r.write(t, a.values)
	return t
}

// The layouts that view chooses from.
const (
	viewContiguous = iota
	viewTurned     // dimensions are stored the other way round
	viewStep       // every other element of the last dimension
	viewBackwards  // the first dimension is stored backwards
	viewMisaligned // contiguous, from an odd element on
	viewPadded     // rows have a gap after them
	viewInner      // a block with elements around it in each dimension
	views
)

// view is a tensor with a random layout.
func (r *rig) view(of tensor.Type, shape []int) *tensor.Tensor {
	r.Helper()
	return r.viewAs(r.random.IntN(views), of, shape)
}

func (r *rig) viewAs(kind int, of tensor.Type, shape []int) *tensor.Tensor {
	r.Helper()
	if len(shape) == 0 && kind != viewMisaligned {
		kind = viewContiguous
	}
	stored := slices.Clone(shape)
	last := len(stored) - 1
	switch kind {
	case viewTurned:
		slices.Reverse(stored)
	case viewStep:
		stored[last] *= 2
	case viewMisaligned:
		stored = []int{count(shape) + 3}
	case viewPadded:
		stored[last] += 1 + r.random.IntN(5)
	case viewInner:
		for d := range stored {
			stored[d] += 3
		}
	}
	t, err := tensor.New(r.s, of, stored...)
	require.NoError(r, err)
	switch kind {
	case viewTurned:
		var dims []int
		for d := range shape {
			dims = append(dims, last-d)
		}
		t, err = t.Permute(dims...)
	case viewStep:
		t, err = t.Slice(-1, 0, stored[last], 2)
	case viewBackwards:
		if n := shape[0]; n > 0 {
			t, err = t.Slice(0, n-1, -1, -1)
		}
	case viewMisaligned:
		t, err = t.Narrow(0, 1+2*r.random.IntN(2), count(shape))
		require.NoError(r, err)
		t, err = t.Reshape(shape...)
	case viewPadded:
		t, err = t.Narrow(-1, 0, shape[last])
	case viewInner:
		for d, n := range shape {
			t, err = t.Narrow(d, 1+r.random.IntN(2), n)
			require.NoError(r, err)
		}
	}
	require.NoError(r, err)
	require.True(r, slices.Equal(shape, t.Shape()))
	return t
}

// repeated is an operand of a shape whose elements are repeated along some dimensions in memory, and its values with that
// shape.
func (r *rig) repeated(shape []int, f func() float64) (*tensor.Tensor, array) {
	r.Helper()
	part := newArray(r.part(shape), f)
	t, err := r.tensor(part).Broadcast(shape...)
	require.NoError(r, err)
	whole := array{shape: shape}
	each(shape, func(index []int) { whole.values = append(whole.values, part.values[part.index(index)]) })
	return t, whole
}

func (r *rig) write(t *tensor.Tensor, values []float64) {
	r.Helper()
	singles := make([]float32, len(values))
	for i, v := range values {
		singles[i] = float32(v)
		values[i] = float64(singles[i]) // the reference has the rounded number
	}
	packed, err := tensor.From(r.s, singles, len(singles))
	require.NoError(r, err)
	packed, err = packed.Reshape(t.Shape()...)
	require.NoError(r, err)
	require.NoError(r, tensor.Copy(r.s, t, packed))
}

// read is the values of a tensor of any type. Packed ones of float32, as most results are, need no launch, nor a kernel for it.
func (r *rig) read(t *tensor.Tensor) array {
	r.Helper()
	if t.Type() == tensor.Float32 && t.Layout().Contiguous() {
		singles, err := tensor.Read[float32](t)
		require.NoError(r, err)
		values := make([]float64, len(singles))
		for i, v := range singles {
			values[i] = float64(v)
		}
		return array{t.Shape(), values}
	}
	wide, err := r.o.Cast(r.s, t, tensor.Float64)
	require.NoError(r, err)
	values, err := tensor.Read[float64](wide)
	require.NoError(r, err)
	return array{t.Shape(), values}
}

// near requires numbers within a relative error, and as much of the scale.
func (r *rig) near(want []float64, t *tensor.Tensor, bound, scale float64, text ...any) {
	r.Helper()
	got := r.read(t).values
	require.Len(r, got, len(want), text...)
	for i, w := range want {
		switch {
		case math.IsNaN(w):
			require.True(r, math.IsNaN(got[i]), append(text, w, got[i]))
		case math.IsInf(w, 0):
			require.Equal(r, w, got[i], text...)
		case !(math.Abs(got[i]-w) <= bound*(math.Abs(w)+scale)): // a NaN is not near, either; a call for each number would take longer than all else
			require.LessOrEqual(r, math.Abs(got[i]-w), bound*(math.Abs(w)+scale), append(text, i, w, got[i]))
		}
	}
}
