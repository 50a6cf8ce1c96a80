package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// An operand of another type than the output must not lie over it either, as indices, classes, a condition, or the number of a
// launch, of which one element is enough. Nothing is written then.
func TestOperandsOfOtherTypesOverTheOutput(t *testing.T) {
	r := newRig(t)
	const rows, columns = 2, 4
	over := func(out *tensor.Tensor, of tensor.Type, shape ...int) *tensor.Tensor {
		t.Helper()
		b, err := out.Buffer()
		require.NoError(t, err)
		l, err := layout.Of(shape...)
		require.NoError(t, err)
		view, err := tensor.Over(r.s, b, of, l)
		require.NoError(t, err)
		return view
	}
	x := r.zeros(rows, columns)
	last := func(out *tensor.Tensor) *tensor.Tensor {
		t.Helper()
		one, err := over(out, tensor.Int64, rows*columns/2).Narrow(0, rows*columns/2-1, 1)
		require.NoError(t, err)
		return one
	}
	for name, run := range map[string]func(out *tensor.Tensor) error{
		"uniform": func(out *tensor.Tensor) error {
			return r.o.UniformInto(r.s, out, ops.Random{Ahead: over(out, tensor.Int64)}, 0, 1)
		},
		"normal": func(out *tensor.Tensor) error {
			return r.o.NormalInto(r.s, out, ops.Random{Ahead: over(out, tensor.Int64, 1)}, 0, 1)
		},
		"uniform, end": func(out *tensor.Tensor) error { return r.o.UniformInto(r.s, out, ops.Random{Ahead: last(out)}, 0, 1) },
		"gather": func(out *tensor.Tensor) error {
			return r.o.GatherInto(r.s, out, x, over(out, tensor.Int32, rows, columns), 0)
		},
		"gather backward": func(out *tensor.Tensor) error {
			return r.o.GatherBackwardInto(r.s, out, x, over(out, tensor.Int32, rows, columns), 0)
		},
		"scatter add": func(out *tensor.Tensor) error {
			return r.o.ScatterAddInto(r.s, out, over(out, tensor.Int32, rows, columns), x, 0)
		},
		"embedding": func(out *tensor.Tensor) error { return r.o.EmbeddingInto(r.s, out, x, over(out, tensor.Int64, rows)) },
		"embedding backward": func(out *tensor.Tensor) error {
			return r.o.EmbeddingBackwardInto(r.s, out, x, over(out, tensor.Int64, rows))
		},
		"where": func(out *tensor.Tensor) error {
			return r.o.WhereInto(r.s, out, over(out, tensor.Bool, rows, columns), x, x)
		},
		"a comparison": func(out *tensor.Tensor) error {
			return r.o.LtInto(r.s, over(out, tensor.Bool, rows, columns), out, x)
		},
		"arg max": func(out *tensor.Tensor) error { return r.o.ArgMaxInto(r.s, over(out, tensor.Int64, rows, 1), out, 1) },
		"cross entropy": func(out *tensor.Tensor) error {
			return r.o.CrossEntropyInto(r.s, over(out, tensor.Float32, rows), x, over(out, tensor.Int64, rows))
		},
	} {
		out, err := tensor.Full(r.s, float32(1), rows, columns)
		require.NoError(t, err)
		require.NoError(t, out.Allocate())
		require.ErrorIs(t, run(out), kernel.ErrOverlap, name)
		r.near([]float64{1, 1, 1, 1, 1, 1, 1, 1}, out, 0, 0, name)
	}
}
