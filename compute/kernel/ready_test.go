package kernel_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
)

// A run of layouts that were run before refuses all that the first one does, and takes the tensors that it is given.
func TestAWarmRunChecksItsTensors(t *testing.T) {
	r := newRig(t)
	k, err := r.kernels.Elementwise(expr.Input(0, tensor.Float32).Add(expr.Input(1, tensor.Float32)))
	require.NoError(t, err)
	part := func(x *tensor.Tensor, from int) *tensor.Tensor {
		view, err := x.Narrow(0, from, 64)
		require.NoError(t, err)
		return view
	}
	one, two, out := r.normal(1, 128), r.normal(2, 128), r.normal(3, 128)
	x, y, z := part(one, 0), part(two, 0), part(out, 32)
	sum := func(z, x, y *tensor.Tensor) {
		t.Helper()
		a, err := tensor.Read[float32](x)
		require.NoError(t, err)
		b, err := tensor.Read[float32](y)
		require.NoError(t, err)
		for i := range a {
			a[i] += b[i]
		}
		require.NoError(t, k.Run(r.c, outs(z), x, y))
		got, err := tensor.Read[float32](z)
		require.NoError(t, err)
		assert.Equal(t, a, got)
	}
	sum(z, x, y)
	sum(z, y, y) // of other memory
	sum(part(two, 32), x, part(out, 0))
	require.ErrorIs(t, k.Run(r.c, outs(part(one, 32)), x, y), kernel.ErrOverlap)
	require.ErrorIs(t, k.Run(r.c, outs(part(two, 32)), x, y), kernel.ErrOverlap)
	sum(x, x, y) // in place
	sum(x, x, y)
	sum(y, x, y)
	sum(y, x, y)

	same, err := tensor.New(r.c, tensor.Int32, 128)
	require.NoError(t, err)
	var typed *tensor.TypeError
	require.ErrorAs(t, k.Run(r.c, outs(z), x, part(same, 0)), &typed)
	var count *kernel.CountError
	require.ErrorAs(t, k.Run(r.c, outs(z), x), &count)
	require.ErrorAs(t, k.Run(r.c, nil, x, y, z), &count)
	require.ErrorIs(t, k.Run(r.c, outs(z), x, nil), tensor.ErrNoTensor)
	require.NoError(t, same.Free())

	gone, err := tensor.From(r.c, make([]float32, 128), 128)
	require.NoError(t, err)
	freed := part(gone, 0)
	require.NoError(t, gone.Free())
	var refused *kernel.OperandError
	err = k.Run(r.c, outs(z), x, freed)
	require.ErrorIs(t, err, tensor.ErrFreed)
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 1, refused.Index)
	assert.False(t, refused.Output)
	require.NoError(t, r.c.Synchronize(t.Context()))
}

// A warm run does not take an input for an output: tensors on the wrong side are refused as in the first run.
func TestAWarmRunKnowsInputsFromOutputs(t *testing.T) {
	r := newRig(t)
	k, err := r.kernels.Elementwise(expr.Input(0, tensor.Int32).Cast(tensor.Float32))
	require.NoError(t, err)
	numbers, err := tensor.From(r.c, []int32{1, -2, 3})
	require.NoError(t, err)
	result := r.made(tensor.Float32, 3)
	for range 2 {
		require.NoError(t, k.Run(r.c, outs(result), numbers))
		var typed *tensor.TypeError
		require.ErrorAs(t, k.Run(r.c, outs(numbers), result), &typed)
	}
	got, err := tensor.Read[float32](result)
	require.NoError(t, err)
	assert.Equal(t, []float32{1, -2, 3}, got)
	require.NoError(t, numbers.Free())
}

// Rows that several blocks reduce have tickets of their context, which are made once, and gone with it.
func TestTicketsAreOfAContext(t *testing.T) {
	r := newRigOn(t, launching(t))
	total, err := r.kernels.Reduction(plan.All, expr.Input(0, tensor.Float32).Sum())
	require.NoError(t, err)
	x, s := r.normal(1, 1<<17), r.made(tensor.Float32)
	other := r.context()
	tickets := func(run func() error) int64 {
		t.Helper()
		before := r.dev.Stats().LiveBytes
		require.NoError(t, run())
		return r.dev.Stats().LiveBytes - before
	}
	require.NoError(t, s.Allocate())
	for range 2 {
		require.NoError(t, total.Run(r.c, outs(s), x))
		require.NoError(t, total.Run(r.c, outs(s), x))
	}
	assert.Positive(t, tickets(func() error { return total.Run(other, outs(s), x) }))
	assert.Zero(t, tickets(func() error { return total.Run(other, outs(s), x) }))
	assert.Zero(t, tickets(func() error { return total.Run(r.c, outs(s), x) }))
	assert.Zero(t, tickets(func() error { return total.Run(other, outs(s), x) }))
	require.NoError(t, other.Synchronize(t.Context()))
	require.NoError(t, other.Stream().Close())
	require.ErrorIs(t, total.Run(other, outs(s), x), vram.ErrClosed)
	require.NoError(t, total.Run(r.c, outs(s), x))
}
