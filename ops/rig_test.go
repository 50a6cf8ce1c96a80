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
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/ops"
	"github.com/go-vram/vram/tensor"
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
}

func newRig(tb testing.TB) *rig {
	tb.Helper()
	return newRigWith(tb, open(tb))
}

func newRigOn(tb testing.TB, driver cudadrv.Driver) *rig {
	tb.Helper()
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, dev.Close()) })
	return newRigWith(tb, dev)
}

// newRigWith is a rig on a device, which the caller closes.
func newRigWith(tb testing.TB, dev *vram.Device) *rig {
	tb.Helper()
	stream, err := dev.NewStream()
	require.NoError(tb, err)
	r := &rig{TB: tb, dev: dev, random: rand.New(rand.NewPCG(1, 2))}
	r.c, err = cuda.NewContext(stream)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, r.c.Close()) })
	r.o, err = ops.New(r.c)
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

// lengths are those of dimensions: none, one, primes, and neighbours of powers of two.
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

// tensor has the values of an array: contiguous, turned, with a step, or the other way round.
func (r *rig) tensor(a array) *tensor.Tensor {
	r.Helper()
	t := r.view(tensor.Float32, a.shape)
	r.write(t, a.values)
	return t
}

// view is a tensor with a random layout.
func (r *rig) view(of tensor.Type, shape []int) *tensor.Tensor {
	r.Helper()
	kind := r.random.IntN(4)
	if len(shape) == 0 {
		kind = 0
	}
	stored := slices.Clone(shape)
	switch kind {
	case 1:
		slices.Reverse(stored)
	case 2:
		stored[len(stored)-1] *= 2
	}
	t, err := tensor.New(r.s, of, stored...)
	require.NoError(r, err)
	switch kind {
	case 1:
		var dims []int
		for d := range shape {
			dims = append(dims, len(shape)-1-d)
		}
		t, err = t.Permute(dims...)
	case 2:
		t, err = t.Slice(-1, 0, stored[len(stored)-1], 2)
	case 3:
		if n := shape[0]; n > 0 {
			t, err = t.Slice(0, n-1, -1, -1)
		}
	}
	require.NoError(r, err)
	require.True(r, slices.Equal(shape, t.Shape()))
	return t
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

// read is the values of a tensor of any type.
func (r *rig) read(t *tensor.Tensor) array {
	r.Helper()
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
		default:
			require.LessOrEqual(r, math.Abs(got[i]-w), bound*(math.Abs(w)+scale), append(text, i, w, got[i]))
		}
	}
}
