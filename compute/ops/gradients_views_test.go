package ops_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor"
)

// throughCalls is an operation whose gradient is a call of others.
type throughCalls struct {
	shape   []int
	forward func(x *tensor.Tensor) (*tensor.Tensor, error)
	back    func(x, grad *tensor.Tensor) (*tensor.Tensor, error)
}

func (r *rig) double(shape []int, values []float64) *tensor.Tensor {
	r.Helper()
	x, err := tensor.From(r.s, values, shape...)
	require.NoError(r, err)
	return x
}

// intoZeros is the gradient of a view that leaves out elements.
func (r *rig) intoZeros(x, grad *tensor.Tensor, view func(x *tensor.Tensor) (*tensor.Tensor, error)) (*tensor.Tensor, error) {
	dx, err := tensor.Zeros(r.s, x.Type(), x.Shape()...)
	require.NoError(r, err)
	part, err := view(dx)
	require.NoError(r, err)
	return dx, r.o.CopyInto(r.s, part, grad)
}

// gradientsByCalls are the rows of the table of docs/operations.md.
func (r *rig) gradientsByCalls() map[string][]throughCalls {
	type one = *tensor.Tensor
	shape := []int{3, 4, 2}
	whole := func(x, grad one) (one, error) { return grad.Reshape(x.Shape()...) }
	repeat := func(x, grad one) (one, error) { return grad.Broadcast(x.Shape()...) }
	turned := func(_, grad one) (one, error) { return grad.Transpose(0, 2) }
	slice := func(x one) (one, error) { return x.Slice(1, 3, 0, -2) }
	narrow := func(x one) (one, error) { return x.Narrow(1, 1, 2) }
	index := func(x one) (one, error) { return x.Index(0, 1) }
	beside := r.double([]int{3, 2, 2}, newArray([]int{3, 2, 2}, r.random.NormFloat64).values)
	indices, err := tensor.From(r.s, []int64{2, 0, 2, 1}, 4, 1, 1)
	require.NoError(r, err)
	indices, err = indices.Transpose(0, 1)
	require.NoError(r, err)
	return map[string][]throughCalls{
		"Copy": {{shape, func(x one) (one, error) { return r.o.Copy(r.s, x) }, func(_, grad one) (one, error) { return grad, nil }}},
		"Cast": {
			{
				shape, func(x one) (one, error) { return r.o.Cast(r.s, x, tensor.Float32) },
				func(x, grad one) (one, error) { return r.o.Cast(r.s, grad, x.Type()) },
			}, {
				shape, func(x one) (one, error) { return r.o.Cast(r.s, x, tensor.Float32) },
				func(x, grad one) (one, error) {
					dx := r.view(x.Type(), x.Shape())
					return dx, r.o.CopyInto(r.s, dx, grad)
				},
			},
		},
		"TransposeCopy": {{shape, func(x one) (one, error) { return r.o.TransposeCopy(r.s, x, 0, 2) }, turned}},
		"Transpose":     {{shape, func(x one) (one, error) { return x.Transpose(0, 2) }, turned}},
		"Permute": {{
			shape, func(x one) (one, error) { return x.Permute(2, 0, 1) },
			func(_, grad one) (one, error) { return grad.Permute(1, 2, 0) },
		}},
		"Reshape":   {{shape, func(x one) (one, error) { return x.Reshape(6, 4) }, whole}},
		"Flatten":   {{shape, func(x one) (one, error) { return x.Flatten(0, 1) }, whole}},
		"Squeeze":   {{[]int{3, 1, 2}, func(x one) (one, error) { return x.Squeeze(1) }, whole}},
		"Unsqueeze": {{shape, func(x one) (one, error) { return x.Unsqueeze(1) }, whole}},
		"Slice":     {{shape, slice, func(x, grad one) (one, error) { return r.intoZeros(x, grad, slice) }}},
		"Narrow":    {{shape, narrow, func(x, grad one) (one, error) { return r.intoZeros(x, grad, narrow) }}},
		"Index":     {{shape, index, func(x, grad one) (one, error) { return r.intoZeros(x, grad, index) }}},
		"Concat": {
			{
				shape, func(x one) (one, error) { return r.o.Concat(r.s, 1, x, beside) },
				func(_, grad one) (one, error) { return grad.Narrow(1, 0, 4) },
			}, {
				shape, func(x one) (one, error) { return r.o.Concat(r.s, -2, beside, x) },
				func(_, grad one) (one, error) { return grad.Narrow(1, 2, 4) },
			},
		},
		"Broadcast": {{
			[]int{4, 1},
			func(x one) (one, error) { return x.Broadcast(3, 4, 2) },
			func(x, grad one) (one, error) { return r.o.SumTo(r.s, grad, x.Shape()...) },
		}},
		"SumTo": {{shape, func(x one) (one, error) { return r.o.SumTo(r.s, x, 4, 1) }, repeat}},
		"Sum":   {{shape, func(x one) (one, error) { return r.o.Sum(r.s, x, true, 0, 2) }, repeat}},
		"ScatterAdd": {
			{
				[]int{1, 3, 1},
				func(x one) (one, error) {
					return r.o.ScatterAdd(r.s, x, indices, r.double([]int{1, 4, 1}, []float64{1, 2, 3, 4}), 1)
				},
				func(_, grad one) (one, error) { return grad, nil },
			}, {
				[]int{1, 4, 1},
				func(source one) (one, error) {
					return r.o.ScatterAdd(r.s, r.double([]int{1, 3, 1}, []float64{1, 2, 3}), indices, source, 1)
				},
				func(_, grad one) (one, error) { return r.o.Gather(r.s, grad, indices, 1) },
			},
		},
	}
}

// Each row of the table of gradients that are calls of other operations is the derivative, by differences.
func TestGradientsThatNeedNoFunction(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "## Gradients that need no function")
	require.True(t, found)
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(row[1], -1) {
			named = append(named, name[1])
		}
	}
	all := newRig(t)
	rows := all.gradientsByCalls()
	var tested []string
	for name, ways := range rows {
		tested = append(tested, name)
		t.Run(name, func(t *testing.T) {
			r := all.in(t)
			for _, way := range ways {
				a := newArray(way.shape, r.random.NormFloat64)
				forward := func(x []float64) []float64 {
					y, err := way.forward(r.double(way.shape, x))
					require.NoError(t, err)
					return r.read(y).values
				}
				x := r.double(way.shape, a.values)
				y, err := way.forward(x)
				require.NoError(t, err)
				g := newArray(y.Shape(), r.random.NormFloat64)
				grad, err := r.o.Cast(r.s, r.double(g.shape, g.values), y.Type())
				require.NoError(t, err)
				dx, err := way.back(x, grad)
				require.NoError(t, err)
				require.Equal(t, way.shape, dx.Shape())
				require.Equal(t, tensor.Float64, dx.Type())
				bound := 1e-6
				if y.Type() == tensor.Float32 {
					bound = 2e-2 // differences of rounded numbers
				}
				r.near(changes(forward, a.values, g.values), dx, bound, 1)
			}
		})
	}
	slices.Sort(named)
	slices.Sort(tested)
	require.Equal(t, named, tested)
}
