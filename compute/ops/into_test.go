package ops_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor"
)

// along applies f to the rows of arrays of one shape along an axis.
func along(axis int, f func(rows ...[]float64) []float64, all ...array) []float64 {
	shape := all[0].shape
	if axis < 0 {
		axis += len(shape)
	}
	rows := make([][][]float64, len(all))
	for i, a := range all {
		rows[i] = a.rows([]int{axis})
	}
	results := make([][]float64, len(rows[0]))
	for row := range results {
		var operands [][]float64
		for i := range all {
			operands = append(operands, rows[i][row])
		}
		results[row] = f(operands...)
	}
	var values []float64
	kept := slices.Delete(slices.Clone(shape), axis, axis+1)
	places := array{shape: kept}
	each(shape, func(index []int) {
		values = append(values, results[places.index(slices.Delete(slices.Clone(index), axis, axis+1))][index[axis]])
	})
	return values
}

// Forms that write into a tensor compute their reference on operands and into outputs of every layout, also where operands
// repeat elements.
func TestIntoOfViews(t *testing.T) {
	for kind := range views {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			r := newRig(t)
			for _, shape := range [][]int{{9}, {3, 5}, {4, 8}, {2, 3, 7}, {3, 4, 16}} {
				rank := len(shape)
				axis := r.random.IntN(rank)
				out := func() *tensor.Tensor { return r.viewAs(kind, tensor.Float32, shape) }
				operand := func(f func() float64) (*tensor.Tensor, array) {
					if r.random.IntN(2) == 0 {
						return r.repeated(shape, f)
					}
					a := newArray(shape, f)
					x := r.viewAs(kind, tensor.Float32, shape)
					r.write(x, a.values)
					return x, a
				}
				x, a := operand(r.random.NormFloat64)
				grad, g := operand(r.random.NormFloat64)
				about := fmt.Sprint(shape, axis)

				y := out()
				require.NoError(t, r.o.SoftmaxInto(r.s, y, x, axis))
				soft := along(axis, func(rows ...[]float64) []float64 { return softmax(rows[0]) }, a)
				r.near(soft, y, 1e-5, 1e-6, about)
				dx := out()
				require.NoError(t, r.o.SoftmaxBackwardInto(r.s, dx, grad, y, axis))
				r.near(along(axis, func(rows ...[]float64) []float64 {
					total := 0.0
					for i, y := range rows[1] {
						total += rows[0][i] * y
					}
					return zipped(rows[0], rows[1], func(g, y float64) float64 { return y * (g - total) })
				}, g, array{shape, soft}), dx, 1e-5, 1e-1, about)
				require.NoError(t, r.o.LogSoftmaxInto(r.s, y, x, axis))
				logs := mapped(soft, math.Log)
				r.near(logs, y, 1e-5, 1, about)
				require.NoError(t, r.o.LogSoftmaxBackwardInto(r.s, dx, grad, y, axis))
				r.near(along(axis, func(rows ...[]float64) []float64 {
					total := sum(rows[0])
					return zipped(rows[0], rows[1], func(g, y float64) float64 { return g - math.Exp(y)*total })
				}, g, array{shape, logs}), dx, 1e-5, 1, about)

				weight, bias := newArray(shape[rank-1:], r.random.NormFloat64), newArray(shape[rank-1:], r.random.NormFloat64)
				require.NoError(t, r.o.LayerNormInto(r.s, y, x, r.tensor(weight), r.tensor(bias), 1, epsilon))
				r.near(along(-1, func(rows ...[]float64) []float64 {
					all := layerNorm(rows[0])
					for i := range all {
						all[i] = all[i]*weight.values[i] + bias.values[i]
					}
					return all
				}, a), y, 1e-4, 4, about)

				r.gradientsInto(kind, shape, grad, g, about)
				if rank > 1 {
					r.crossEntropyInto(kind, shape, x, a, about)
				}
			}
		})
	}
}

func zipped(a, b []float64, f func(a, b float64) float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = f(a[i], b[i])
	}
	return all
}

// gradientsInto checks the gradients of arithmetic, also for operands that were broadcast.
func (r *rig) gradientsInto(kind int, shape []int, grad *tensor.Tensor, g array, about string) {
	r.Helper()
	a, b := newArray(shape, r.random.NormFloat64), newArray(r.part(shape), func() float64 { return 1 + r.random.Float64() })
	x, y := r.tensor(a), r.tensor(b)
	dx, dy := r.viewAs(kind, tensor.Float32, shape), r.viewAs(kind, tensor.Float32, b.shape)
	summed := func(f func(g, x, y float64) float64) []float64 {
		all := make([]float64, len(b.values))
		each(shape, func(index []int) {
			at := b.index(index)
			all[at] += f(g.values[g.index(index)], a.values[a.index(index)], b.values[at])
		})
		return all
	}
	require.NoError(r, r.o.AddBackwardInto(r.s, dx, dy, grad))
	r.near(g.values, dx, 0, 0, about)
	r.near(summed(func(g, _, _ float64) float64 { return g }), dy, 1e-5, 4, about)
	require.NoError(r, r.o.SubBackwardInto(r.s, dx, dy, grad))
	r.near(g.values, dx, 0, 0, about)
	r.near(summed(func(g, _, _ float64) float64 { return -g }), dy, 1e-5, 4, about)
	require.NoError(r, r.o.DivBackwardInto(r.s, dx, dy, grad, x, y))
	var quotient []float64
	each(shape, func(index []int) { quotient = append(quotient, g.values[g.index(index)]/b.values[b.index(index)]) })
	r.near(quotient, dx, 1e-6, 0, about)
	r.near(summed(func(g, x, y float64) float64 { return -g * x / y / y }), dy, 1e-5, 4, about)
}

// crossEntropyInto checks loss and gradient of rows along the last dimension.
func (r *rig) crossEntropyInto(kind int, shape []int, logits *tensor.Tensor, a array, about string) {
	r.Helper()
	rows, classes := shape[:len(shape)-1], shape[len(shape)-1]
	targets := make([]int64, count(rows))
	for i := range targets {
		targets[i] = int64(r.random.IntN(classes))
	}
	packed, err := tensor.From(r.s, targets, rows...)
	require.NoError(r, err)
	of := r.viewAs(kind, tensor.Int64, rows)
	require.NoError(r, tensor.Copy(r.s, of, packed))
	grad, g := r.repeated(rows, r.random.NormFloat64)
	loss, dx := r.viewAs(kind, tensor.Float32, rows), r.viewAs(kind, tensor.Float32, shape)
	require.NoError(r, r.o.CrossEntropyInto(r.s, loss, logits, of))
	require.NoError(r, r.o.CrossEntropyBackwardInto(r.s, dx, grad, logits, of))
	var want, gradient []float64
	for i, row := range a.rows([]int{len(shape) - 1}) {
		want = append(want, logSumExp(row)-row[targets[i]])
		for j, p := range softmax(row) {
			gradient = append(gradient, g.values[i]*(p-truth(int64(j) == targets[i])))
		}
	}
	r.near(want, loss, 1e-5, 1, about)
	r.near(gradient, dx, 1e-5, 1e-1, about)
}
