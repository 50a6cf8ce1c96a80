package ops_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

// halves are the types of 16 bits, with the greatest relative error of one rounding.
var halves = map[tensor.Type]float64{tensor.Float16: 0x1p-11, tensor.BFloat16: 0x1p-8}

// rounded is a number as a type of 16 bits has it.
func rounded(of tensor.Type, x float64) float64 {
	if of == tensor.Float16 {
		return float64(half.NewFloat16(float32(x)).Float32())
	}
	return float64(half.NewBFloat16(float32(x)).Float32())
}

// halfOf is a tensor of a type of 16 bits. The array has the rounded numbers then.
func (r *rig) halfOf(of tensor.Type, a array) *tensor.Tensor {
	r.Helper()
	for i, x := range a.values {
		a.values[i] = rounded(of, x)
	}
	single, err := tensor.From(r.s, mappedTo(a.values), a.shape...)
	require.NoError(r, err)
	t, err := r.o.Cast(r.s, single, of)
	require.NoError(r, err)
	return t
}

func mappedTo(values []float64) []float32 {
	all := make([]float32, len(values))
	for i, x := range values {
		all[i] = float32(x)
	}
	return all
}

// longRows returns lengths that a type of 16 bits does not have as a number: bfloat16 none but 65520, float16 the odd ones and
// those above 65504. The short form leaves out the long ones.
func longRows() []int {
	if testing.Short() {
		return []int{259, 2051}
	}
	return []int{259, 2051, 65520, 70000}
}

// Means, norms and their gradients of rows of 16-bit numbers are computed in float32 and rounded once, also where the number of
// elements is none of the type.
func TestLongRowsOfHalves(t *testing.T) {
	r := newRig(t)
	for of, bound := range halves {
		for _, n := range longRows() {
			t.Run(fmt.Sprint(of, " ", n), func(t *testing.T) {
				r := r.in(t)
				signs, sign := newArray([]int{n}, func() float64 { return 0 }), -1.0
				for i := range signs.values {
					sign = -sign
					signs.values[i] = sign
				}
				x := r.halfOf(of, signs)
				twos, err := r.o.Fill(r.s, of, 2, n)
				require.NoError(t, err)
				all := func(x float64) []float64 { return newArray([]int{n}, func() float64 { return x }).values }

				mean, err := r.o.Mean(r.s, twos, false)
				require.NoError(t, err)
				require.Equal(t, []float64{2}, r.read(mean).values)
				y, err := r.o.RMSNorm(r.s, twos, nil, 1, 0)
				require.NoError(t, err)
				r.near(all(1), y, bound, 0)
				y, err = r.o.LayerNorm(r.s, x, nil, nil, 1, epsilon)
				require.NoError(t, err)
				r.near(layerNorm(signs.values), y, bound+1e-5, 0)

				g := newArray([]int{n}, r.random.NormFloat64)
				grad := r.halfOf(of, g)
				dx, dweight, dbias, err := r.o.LayerNormBackward(r.s, grad, x, nil, 1, epsilon)
				require.NoError(t, err)
				r.near(layerNormGradient(g.values, signs.values), dx, bound+1e-4, 1e-2)
				weights := layerNorm(signs.values)
				for i := range weights {
					weights[i] *= g.values[i]
				}
				r.near(weights, dweight, bound+1e-4, 0)
				r.near(g.values, dbias, 0, 0)
				dx, _, err = r.o.RMSNormBackward(r.s, grad, twos, nil, 1, 0)
				require.NoError(t, err)
				mg := sum(g.values) / float64(n)
				r.near(mapped(g.values, func(g float64) float64 { return (g - mg) / 2 }), dx, bound+1e-4, 1e-2)
			})
		}
	}
}

// layerNormGradient is the gradient of the operand of a layer norm of one row.
func layerNormGradient(grad, x []float64) []float64 {
	n := float64(len(x))
	mean := sum(x) / n
	variance := sum(mapped(x, func(x float64) float64 { return (x - mean) * (x - mean) })) / n
	hat := layerNorm(x)
	g, gHat := sum(grad)/n, 0.0
	for i := range hat {
		gHat += grad[i] * hat[i] / n
	}
	all := make([]float64, len(x))
	for i := range x {
		all[i] = (grad[i] - g - hat[i]*gHat) / math.Sqrt(variance+epsilon)
	}
	return all
}

// A number is not rounded to the type of 16-bit elements: an epsilon that float16 cannot represent counts, and constants of
// activations have the error of float32.
func TestNumbersBesideHalves(t *testing.T) {
	r := newRig(t)
	for of, bound := range halves {
		a := newArray([]int{999}, func() float64 { return 3 * r.random.NormFloat64() })
		x := r.halfOf(of, a)
		for name, c := range map[string]struct {
			run  makes1
			want func(x float64) float64
		}{
			"gelu": {r.o.Gelu, func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }},
			"gelu by tanh": {r.o.GeluTanh, func(x float64) float64 {
				return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
			}},
		} {
			y, err := c.run(r.s, x)
			require.NoError(t, err)
			r.near(mapped(a.values, c.want), y, bound+1e-5, 1e-3, name, of)
		}
		small := newArray([]int{8}, func() float64 { return 1e-4 })
		y, err := r.o.RMSNorm(r.s, r.halfOf(of, small), nil, 1, 1e-8)
		require.NoError(t, err)
		want := small.values[0] / math.Sqrt(small.values[0]*small.values[0]+1e-8)
		r.near(mapped(small.values, func(float64) float64 { return want }), y, bound+1e-5, 0, of)
	}
}

// A step of AdamW on 16-bit parameters rounds the parameter and the moments once.
func TestAdamWOfHalves(t *testing.T) {
	r := newRig(t)
	config := ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01}
	rate, err := r.o.Fill(r.s, tensor.Float32, 1e-3)
	require.NoError(t, err)
	step, err := r.o.Fill(r.s, tensor.Float32, 1)
	require.NoError(t, err)
	for of, bound := range halves {
		p, g := newArray([]int{50}, r.random.NormFloat64), newArray([]int{50}, r.random.NormFloat64)
		param, grad := r.halfOf(of, p), r.halfOf(of, g)
		first, second := r.zeros(50), r.zeros(50)
		require.NoError(t, r.o.AdamW(r.s, ops.AdamWState{Param: param, Grad: grad, First: first, Second: second}, rate, step, config))
		want := make([]float64, len(p.values))
		for i, x := range p.values {
			gradient := g.values[i]
			want[i] = x*(1-1e-5) - 1e-3*gradient/(math.Abs(gradient)+1e-8)
		}
		r.near(want, param, bound+1e-6, 1e-7, of)
		r.near(mapped(g.values, func(g float64) float64 { return 0.1 * g }), first, 1e-6, 0, of)
		r.near(mapped(g.values, func(g float64) float64 { return 0.001 * g * g }), second, 1e-4, 0, of)
	}
}
