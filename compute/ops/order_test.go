package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// Gradients over operands equal the gradients in separate memory, or are refused before anything is written.
func TestGradientsOverOperands(t *testing.T) {
	r := newRig(t)
	const rows, columns = 3, 4
	const dx, dy, grad, x, y = 0, 1, 2, 3, 4
	for name, op := range map[string]struct {
		run     func(all []*tensor.Tensor) error
		refused [][2]int // operands that are one tensor
		right   [][2]int
	}{
		"add": {
			func(a []*tensor.Tensor) error { return r.o.AddBackwardInto(r.s, a[dx], a[dy], a[grad]) },
			[][2]int{{dx, dy}},
			[][2]int{{dx, grad}, {dy, grad}},
		},
		"sub": {
			func(a []*tensor.Tensor) error { return r.o.SubBackwardInto(r.s, a[dx], a[dy], a[grad]) },
			[][2]int{{dx, dy}},
			[][2]int{{dx, grad}, {dy, grad}},
		},
		"where": {
			func(a []*tensor.Tensor) error { return r.o.WhereBackwardInto(r.s, a[dx], a[dy], a[grad], a[x]) },
			[][2]int{{dx, dy}},
			[][2]int{{dx, grad}, {dy, grad}, {dx, x}, {dy, x}},
		},
		"mul": {
			func(a []*tensor.Tensor) error { return r.o.MulBackwardInto(r.s, a[dx], a[dy], a[grad], a[x], a[y]) },
			[][2]int{{dx, dy}},
			[][2]int{{dx, grad}, {dx, x}, {dx, y}, {dy, grad}, {dy, x}, {dy, y}},
		},
		"div": {
			func(a []*tensor.Tensor) error { return r.o.DivBackwardInto(r.s, a[dx], a[dy], a[grad], a[x], a[y]) },
			[][2]int{{dx, dy}},
			[][2]int{{dx, grad}, {dx, x}, {dx, y}, {dy, x}},
		},
		"div over what both read": {
			func(a []*tensor.Tensor) error { return r.o.DivBackwardInto(r.s, a[dx], a[dy], a[grad], a[x], a[y]) },
			nil,
			[][2]int{{dy, grad}, {dy, y}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := r.in(t)
			values := make([]array, 5)
			for i := range values {
				values[i] = newArray([]int{rows, columns}, func() float64 { return 1 + r.random.Float64() })
			}
			made := func() []*tensor.Tensor {
				all := make([]*tensor.Tensor, len(values))
				for i := range all {
					single, err := tensor.From(r.s, mappedTo(values[i].values), rows, columns)
					require.NoError(t, err)
					all[i] = single
				}
				return all
			}
			apart := made()
			require.NoError(t, op.run(apart))
			for _, pair := range op.right {
				all := made()
				all[pair[0]] = all[pair[1]]
				require.NoError(t, op.run(all), pair)
				for _, i := range []int{dx, dy} {
					require.Equal(t, r.read(apart[i]).values, r.read(all[i]).values, pair)
				}
			}
			for _, pair := range op.refused {
				all := made()
				all[pair[0]] = all[pair[1]]
				require.ErrorIs(t, op.run(all), kernel.ErrOverlap, pair)
				require.Equal(t, mapped(values[pair[1]].values, func(x float64) float64 { return float64(float32(x)) }), r.read(all[pair[1]]).values)
			}
			both := made()
			both[dx], both[dy] = both[grad], both[y]
			if name == "mul" || name == "div" {
				require.ErrorIs(t, op.run(both), kernel.ErrOverlap, "each reads what the other writes")
			}
		})
	}
}

// The gradients of a norm's weight and bias may lie over those, and dx over its operands: the launch that reads is first.
func TestGradientsOfNormsOverOperands(t *testing.T) {
	r := newRig(t)
	a, g := newArray([]int{3, 5}, r.random.NormFloat64), newArray([]int{3, 5}, r.random.NormFloat64)
	w := newArray([]int{5}, r.random.NormFloat64)
	made := func(a array) *tensor.Tensor {
		x, err := tensor.From(r.s, mappedTo(a.values), a.shape...)
		require.NoError(t, err)
		return x
	}
	x, grad, weight := made(a), made(g), made(w)
	dx, dw, db, err := r.o.LayerNormBackward(r.s, grad, x, weight, 1, epsilon)
	require.NoError(t, err)
	rmsX, rmsW, err := r.o.RMSNormBackward(r.s, grad, x, weight, 1, epsilon)
	require.NoError(t, err)
	same := func(want, got *tensor.Tensor) {
		t.Helper()
		require.Equal(t, r.read(want).values, r.read(got).values)
	}
	out, other := r.zeros(3, 5), r.zeros(5)
	over := made(w)
	require.NoError(t, r.o.LayerNormBackwardInto(r.s, out, over, other, grad, x, over, 1, epsilon))
	same(dx, out)
	same(dw, over)
	same(db, other)
	over = made(w)
	require.NoError(t, r.o.LayerNormBackwardInto(r.s, out, other, over, grad, x, over, 1, epsilon))
	same(dx, out)
	same(dw, other)
	same(db, over)
	for _, from := range []array{a, g} {
		over, in, gradient := made(from), x, grad
		if &from.values[0] == &a.values[0] {
			in = over
		} else {
			gradient = over
		}
		require.NoError(t, r.o.LayerNormBackwardInto(r.s, over, other, nil, gradient, in, weight, 1, epsilon))
		same(dx, over)
		same(dw, other)
	}
	over = made(w)
	require.NoError(t, r.o.RMSNormBackwardInto(r.s, out, over, grad, x, over, 1, epsilon))
	same(rmsX, out)
	same(rmsW, over)

	over = made(w)
	overX := made(a)
	require.ErrorIs(t, r.o.LayerNormBackwardInto(r.s, overX, over, nil, grad, overX, over, 1, epsilon), kernel.ErrOverlap)
	require.ErrorIs(t, r.o.RMSNormBackwardInto(r.s, overX, over, grad, overX, over, 1, epsilon), kernel.ErrOverlap)
	require.ErrorIs(t, r.o.LayerNormBackwardInto(r.s, nil, over, over, grad, x, nil, 1, epsilon), kernel.ErrOverlap)
	r.near(w.values, over, 1e-6, 0)
}

// A step of AdamW with a gradient, rate or step that it writes is refused.
func TestAdamWOverItsGradient(t *testing.T) {
	r := newRig(t)
	one := r.zeros(1)
	s := ops.AdamWState{Param: r.zeros(1), Grad: r.zeros(1), First: r.zeros(1), Second: r.zeros(1)}
	config := ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	for _, change := range []func(s *ops.AdamWState){
		func(s *ops.AdamWState) { s.Grad = s.Param }, func(s *ops.AdamWState) { s.Grad = s.First },
		func(s *ops.AdamWState) { s.Param = one }, func(s *ops.AdamWState) { s.Second = s.First },
	} {
		changed := s
		change(&changed)
		require.ErrorIs(t, r.o.AdamW(r.s, changed, one, r.zeros(), config), kernel.ErrOverlap)
	}
	require.NoError(t, r.o.AdamW(r.s, s, one, r.zeros(), config))
}

// Weights of a norm, and their gradients, have the dimensions that are normed.
func TestShapesOfWeights(t *testing.T) {
	r := newRig(t)
	x, column, row := r.zeros(5, 7), r.zeros(5, 1), r.zeros(7)
	for _, wrong := range []*tensor.Tensor{column, r.zeros(1), r.zeros(1, 7), r.zeros()} {
		_, err := r.o.LayerNorm(r.s, x, wrong, nil, 1, epsilon)
		require.ErrorIs(t, err, ops.ErrShape)
		_, err = r.o.LayerNorm(r.s, x, row, wrong, 1, epsilon)
		require.ErrorIs(t, err, ops.ErrShape)
		_, err = r.o.RMSNorm(r.s, x, wrong, 1, epsilon)
		require.ErrorIs(t, err, ops.ErrShape)
		_, _, _, err = r.o.LayerNormBackward(r.s, x, x, wrong, 1, epsilon)
		require.ErrorIs(t, err, ops.ErrShape)
		require.ErrorIs(t, r.o.LayerNormBackwardInto(r.s, nil, wrong, nil, x, x, nil, 1, epsilon), ops.ErrShape)
		require.ErrorIs(t, r.o.LayerNormBackwardInto(r.s, nil, nil, wrong, x, x, nil, 1, epsilon), ops.ErrShape)
		require.ErrorIs(t, r.o.RMSNormBackwardInto(r.s, nil, wrong, x, x, nil, 1, epsilon), ops.ErrShape)
	}
	_, err := r.o.LayerNorm(r.s, x, r.zeros(5, 7), row, 2, epsilon)
	require.ErrorIs(t, err, ops.ErrShape)
}
