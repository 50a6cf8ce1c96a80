package ops_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

func TestConcat(t *testing.T) {
	r := newRig(t)
	for i := range 20 {
		shape := r.shape(1 + i%4)
		axis := r.random.IntN(len(shape))
		var all []*tensor.Tensor
		var arrays []array
		shape[axis] = 0
		joined := slices.Clone(shape)
		for range 1 + r.random.IntN(4) {
			of := slices.Clone(shape)
			of[axis] = r.random.IntN(6)
			joined[axis] += of[axis]
			arrays = append(arrays, newArray(of, r.whole))
			all = append(all, r.of([]tensor.Type{tensor.Float32, tensor.Int32}[r.random.IntN(2)], arrays[len(arrays)-1]))
		}
		var want []float64
		each(joined, func(index []int) {
			at := slices.Clone(index)
			for _, a := range arrays {
				if at[axis] < a.shape[axis] {
					want = append(want, a.values[a.index(at)])
					break
				}
				at[axis] -= a.shape[axis]
			}
		})
		y, err := r.o.Concat(r.s, axis-len(shape), all...)
		require.NoError(t, err)
		r.near(want, y, 0, 0, shape, axis)
		out := r.view(tensor.Float64, joined)
		require.NoError(t, r.o.ConcatInto(r.s, out, axis, all...))
		r.near(want, out, 0, 0, shape, axis)
	}
}

// The type of joined tensors is that to which all of them are promoted, in any order.
func TestTypesOfConcat(t *testing.T) {
	r := newRig(t)
	all := []*tensor.Tensor{r.of(tensor.Int32, array{[]int{1}, []float64{3}}), r.of(tensor.Float32, array{[]int{1}, []float64{0.5}}), r.of(tensor.Int8, array{[]int{1}, []float64{2}})}
	want := []float64{3, 0.5, 2}
	for range all {
		y, err := r.o.Concat(r.s, 0, all...)
		require.NoError(t, err)
		require.Equal(t, tensor.Float32, y.Type())
		r.near(want, y, 0, 0)
		all, want = append(all[1:], all[0]), append(want[1:], want[0])
	}
}

func TestMistakesOfConcat(t *testing.T) {
	r := newRig(t)
	x, y := r.tensor(newArray([]int{2, 3}, r.whole)), r.tensor(newArray([]int{2, 4}, r.whole))
	_, err := r.o.Concat(r.s, 0, x, y)
	require.ErrorIs(t, err, ops.ErrShape)
	require.ErrorContains(t, err, "float32[2 4]")
	for _, shape := range [][]int{{2}, {3}, {}, {2, 3, 1}, {1, 2, 3}, {2, 3, 3}} { // of other ranks
		other := r.zeros(shape...)
		for axis := range min(len(shape), 2) {
			_, err = r.o.Concat(r.s, axis, x, other)
			require.ErrorIs(t, err, ops.ErrShape, "%v, %d", shape, axis)
			_, err = r.o.Concat(r.s, axis, other, x)
			require.ErrorIs(t, err, ops.ErrShape, "%v, %d", shape, axis)
		}
	}
	_, err = r.o.Concat(r.s, 2, x, x)
	require.ErrorIs(t, err, ops.ErrAxes)
	_, err = r.o.Concat(r.s, 0)
	require.ErrorIs(t, err, ops.ErrShape)
	_, err = r.o.Concat(r.s, 0, x, nil)
	require.ErrorIs(t, err, tensor.ErrNoTensor)
	require.ErrorIs(t, r.o.ConcatInto(r.s, nil, 0, x), tensor.ErrNoTensor)
	require.ErrorIs(t, r.o.ConcatInto(r.s, y, 1, x, x), ops.ErrShape)
	out := r.view(tensor.Float32, []int{4, 3})
	second, err := out.Slice(0, 2, 4, 1)
	require.NoError(t, err)
	require.ErrorIs(t, r.o.ConcatInto(r.s, out, 0, second, x), kernel.ErrOverlap)
	repeated, err := r.tensor(newArray([]int{1, 3}, r.whole)).Broadcast(2, 3)
	require.NoError(t, err)
	one, err := x.Slice(0, 0, 1, 1)
	require.NoError(t, err)
	assert.ErrorIs(t, r.o.ConcatInto(r.s, repeated, 0, one, one), kernel.ErrRepeats)
}
