package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// over applies f to the rows of an array along its last dimensions, and has the results in the order of the elements.
func (a array) over(dims int, f func(row []float64) []float64) (all []float64) {
	var axes []int
	for d := len(a.shape) - dims; d < len(a.shape); d++ {
		axes = append(axes, d)
	}
	for _, row := range a.rows(axes) {
		all = append(all, f(row)...)
	}
	return all
}

func logSumExp(row []float64) float64 {
	total := 0.0
	for _, x := range row {
		total += math.Exp(x)
	}
	return math.Log(total)
}

func mapped(row []float64, f func(x float64) float64) []float64 {
	all := make([]float64, len(row))
	for i, x := range row {
		all[i] = f(x)
	}
	return all
}

func softmax(row []float64) []float64 {
	total := logSumExp(row)
	return mapped(row, func(x float64) float64 { return math.Exp(x - total) })
}

const epsilon = 1e-5

func layerNorm(row []float64) []float64 {
	n := float64(len(row))
	mean := sum(row) / n
	variance := sum(mapped(row, func(x float64) float64 { return (x - mean) * (x - mean) })) / n
	return mapped(row, func(x float64) float64 { return (x - mean) / math.Sqrt(variance+epsilon) })
}

func rmsNorm(row []float64) []float64 {
	square := sum(mapped(row, func(x float64) float64 { return x * x })) / float64(len(row))
	return mapped(row, func(x float64) float64 { return x / math.Sqrt(square+epsilon) })
}

func TestSoftmaxAndNorms(t *testing.T) {
	r := newRig(t)
	for i := range 10 {
		a := newArray(r.shape(1+i%3), r.random.NormFloat64)
		x, axis := r.tensor(a), -1
		y, err := r.o.Softmax(r.s, x, axis)
		require.NoError(t, err)
		r.near(a.over(1, softmax), y, 1e-5, 1e-6, a.shape)
		out := r.view(tensor.Float32, a.shape)
		require.NoError(t, r.o.LogSoftmaxInto(r.s, out, x, len(a.shape)-1))
		r.near(a.over(1, func(row []float64) []float64 {
			total := logSumExp(row)
			return mapped(row, func(x float64) float64 { return x - total })
		}), out, 1e-5, 1)

		dims := 1 + r.random.IntN(len(a.shape))
		last := a.shape[len(a.shape)-dims:]
		w, b := newArray(last, r.random.NormFloat64), newArray(last, r.random.NormFloat64)
		weight, bias := r.tensor(w), r.tensor(b)
		y, err = r.o.LayerNorm(r.s, x, weight, bias, dims, epsilon)
		require.NoError(t, err)
		r.near(a.over(dims, func(row []float64) []float64 {
			all := layerNorm(row)
			for i := range all {
				all[i] = all[i]*w.values[i] + b.values[i]
			}
			return all
		}), y, 1e-5, 4, a.shape, dims)
		require.NoError(t, r.o.RMSNormInto(r.s, out, x, nil, dims, epsilon))
		r.near(a.over(dims, rmsNorm), out, 1e-5, 1)
	}
}

func TestCrossEntropy(t *testing.T) {
	r := newRig(t)
	const n, classes = 7, 33
	a := newArray([]int{n, classes}, r.random.NormFloat64)
	logits := r.tensor(a)
	targets := make([]int64, n)
	for i := range targets {
		targets[i] = int64(r.random.IntN(classes))
	}
	targets[2], targets[3] = -1, classes
	of, err := tensor.From(r.s, targets)
	require.NoError(t, err)
	loss, err := r.o.CrossEntropy(r.s, logits, of)
	require.NoError(t, err)
	g := newArray([]int{n}, r.random.NormFloat64)
	back, err := r.o.CrossEntropyBackward(r.s, r.tensor(g), logits, of)
	require.NoError(t, err)
	var want, gradient []float64
	for i, row := range a.rows([]int{1}) {
		target := int(targets[i])
		known := target >= 0 && target < classes
		if known {
			want = append(want, logSumExp(row)-row[target])
		} else {
			want = append(want, math.NaN())
		}
		for j, p := range softmax(row) {
			if !known {
				p = math.NaN()
			}
			gradient = append(gradient, g.values[i]*(p-truth(j == target)))
		}
	}
	r.near(want, loss, 1e-5, 1)
	r.near(gradient, back, 1e-5, 1e-1)

	_, err = r.o.CrossEntropy(r.s, logits, logits)
	var types *tensor.TypeError
	require.ErrorAs(t, err, &types)
	for logits, targets := range map[*tensor.Tensor]*tensor.Tensor{
		r.tensor(newArray([]int{n + 1, 3}, r.random.NormFloat64)): of,
		r.zeros(2, 3, 4):    r.made(tensor.Int64, 2, 2),
		r.zeros(2, 3, 4, 5): r.made(tensor.Int64, 2, 3, 3),
		r.zeros(2, 3, 5):    r.made(tensor.Int64, 2),
	} {
		_, err = r.o.CrossEntropy(r.s, logits, targets)
		require.ErrorIs(t, err, ops.ErrShape)
	}
}

// Rows of the class that is ignored have no loss and no gradient, also where there is no such class.
func TestCrossEntropyIgnores(t *testing.T) {
	r := newRig(t)
	const n, classes = 6, 5
	a, g := newArray([]int{n, classes}, r.random.NormFloat64), newArray([]int{n}, r.random.NormFloat64)
	logits, grad := r.tensor(a), r.tensor(g)
	for _, ignored := range []int64{-100, 2, classes} {
		targets := []int64{ignored, 1, 3, ignored, 0, -1}
		of, err := tensor.From(r.s, targets)
		require.NoError(t, err)
		loss, err := r.o.CrossEntropy(r.s, logits, of, ops.Ignored(1), ops.Ignored(ignored)) // the last one counts
		require.NoError(t, err)
		back, err := r.o.CrossEntropyBackward(r.s, grad, logits, of, ops.Ignored(ignored))
		require.NoError(t, err)
		var want, gradient []float64
		for i, row := range a.rows([]int{1}) {
			target := targets[i]
			switch target {
			case ignored:
				want = append(want, 0)
			case -1:
				want = append(want, math.NaN())
			default:
				want = append(want, logSumExp(row)-row[target])
			}
			for j, p := range softmax(row) {
				switch target {
				case ignored:
					p = 0
				case -1:
					p = math.NaN()
				default:
					p = g.values[i] * (p - truth(int64(j) == target))
				}
				gradient = append(gradient, p)
			}
		}
		r.near(want, loss, 1e-5, 1, ignored)
		r.near(gradient, back, 1e-5, 1e-1, ignored)
	}
}

// changes is the derivative of f, by differences, weighted by the gradient of its result.
func changes(f func(x []float64) []float64, x, grad []float64) []float64 {
	all := make([]float64, len(x))
	const h = 1e-5
	for i := range x {
		at := func(step float64) float64 {
			moved := slices.Clone(x)
			moved[i] += step
			total := 0.0
			for j, y := range f(moved) {
				total += y * grad[j]
			}
			return total
		}
		all[i] = (at(h) - at(-h)) / (2 * h)
	}
	return all
}

func TestGradientsOfRows(t *testing.T) {
	r := newRig(t)
	shape := []int{3, 5, 9}
	a, g := newArray(shape, r.random.NormFloat64), newArray(shape, r.random.NormFloat64)
	x, grad := r.tensor(a), r.tensor(g)

	y, err := r.o.Softmax(r.s, x, -1)
	require.NoError(t, err)
	dx, err := r.o.SoftmaxBackward(r.s, grad, y, 2)
	require.NoError(t, err)
	soft := func(x []float64) []float64 { return array{shape, x}.over(1, softmax) }
	r.near(changes(soft, a.values, g.values), dx, 1e-5, 1)

	logs, err := r.o.LogSoftmax(r.s, x, -1)
	require.NoError(t, err)
	dx, err = r.o.LogSoftmaxBackward(r.s, grad, logs, -1)
	require.NoError(t, err)
	logSoft := func(x []float64) []float64 { return mapped(soft(x), math.Log) }
	r.near(changes(logSoft, a.values, g.values), dx, 1e-5, 1)

	for _, dims := range []int{1, 2, 3} {
		last := shape[3-dims:]
		w := newArray(last, r.random.NormFloat64)
		rms := func(w []float64) func(x []float64) []float64 {
			return func(x []float64) []float64 {
				return array{shape, x}.over(dims, func(row []float64) []float64 {
					all := rmsNorm(row)
					for i := range all {
						all[i] *= w[i]
					}
					return all
				})
			}
		}
		rmsX, rmsW, err := r.o.RMSNormBackward(r.s, grad, x, r.tensor(w), dims, epsilon)
		require.NoError(t, err)
		r.near(changes(rms(w.values), a.values, g.values), rmsX, 1e-5, 4)
		r.near(changes(func(w []float64) []float64 { return rms(w)(a.values) }, w.values, g.values), rmsW, 1e-5, 4)
		out := r.view(tensor.Float32, shape)
		require.NoError(t, r.o.RMSNormBackwardInto(r.s, out, nil, grad, x, nil, dims, epsilon))
		ones := mapped(w.values, func(float64) float64 { return 1 })
		r.near(changes(rms(ones), a.values, g.values), out, 1e-5, 4)
		normed := func(w []float64) func(x []float64) []float64 {
			return func(x []float64) []float64 {
				return array{shape, x}.over(dims, func(row []float64) []float64 {
					all := layerNorm(row)
					for i := range all {
						all[i] *= w[i]
					}
					return all
				})
			}
		}
		dx, dw, db, err := r.o.LayerNormBackward(r.s, grad, x, r.tensor(w), dims, epsilon)
		require.NoError(t, err)
		r.near(changes(normed(w.values), a.values, g.values), dx, 1e-5, 4)
		r.near(changes(func(w []float64) []float64 { return normed(w)(a.values) }, w.values, g.values), dw, 1e-5, 4)
		bias := make([]float64, count(last))
		for i, v := range g.values {
			bias[i%len(bias)] += v
		}
		r.near(bias, db, 1e-5, 1)
	}
}

// Gradients of broadcast operands are summed.
func TestGradientsOfBroadcasts(t *testing.T) {
	r := newRig(t)
	for i := range 12 {
		shape := r.shape(i % 4)
		a, b := newArray(shape, r.random.NormFloat64), newArray(r.part(shape), r.random.NormFloat64)
		g := newArray(shape, r.random.NormFloat64)
		x, y, grad := r.tensor(a), r.tensor(b), r.tensor(g)
		add, mul := make([]float64, len(b.values)), make([]float64, len(b.values))
		each(shape, func(index []int) {
			add[b.index(index)] += g.values[g.index(index)]
			mul[b.index(index)] += g.values[g.index(index)] * a.values[a.index(index)]
		})
		dx, dy, err := r.o.AddBackward(r.s, grad, x, y)
		require.NoError(t, err, "%v %v", shape, b.shape)
		r.near(g.values, dx, 0, 0)
		r.near(add, dy, 1e-5, 4)
		dx, dy, err = r.o.MulBackward(r.s, grad, x, y)
		require.NoError(t, err)
		r.near(mul, dy, 1e-5, 4)
		var product []float64
		each(shape, func(index []int) { product = append(product, g.values[g.index(index)]*b.values[b.index(index)]) })
		r.near(product, dx, 1e-6, 0)
		require.NoError(t, r.o.MulBackwardInto(r.s, nil, dy, grad, x, y))

		dx, dy, err = r.o.SubBackward(r.s, grad, x, y)
		require.NoError(t, err)
		r.near(g.values, dx, 0, 0)
		r.near(mapped(add, func(x float64) float64 { return -x }), dy, 1e-5, 4)
		far := newArray(b.shape, func() float64 { return 1 + math.Abs(r.random.NormFloat64()) })
		y = r.tensor(far)
		quotient, divisor := []float64(nil), make([]float64, len(far.values))
		each(shape, func(index []int) {
			by := far.values[far.index(index)]
			quotient = append(quotient, g.values[g.index(index)]/by)
			divisor[far.index(index)] -= g.values[g.index(index)] * a.values[a.index(index)] / by / by
		})
		dx, dy, err = r.o.DivBackward(r.s, grad, x, y)
		require.NoError(t, err)
		r.near(quotient, dx, 1e-6, 0)
		r.near(divisor, dy, 1e-5, 4)
	}
	_, err := r.o.SumTo(r.s, r.tensor(newArray([]int{2, 3}, r.random.NormFloat64)), 2)
	require.ErrorIs(t, err, ops.ErrShape)
}

func TestAdamW(t *testing.T) {
	r := newRig(t)
	shape := []int{5, 7}
	p, g := newArray(shape, r.random.NormFloat64), newArray(shape, r.random.NormFloat64)
	param, grad := r.tensor(p), r.tensor(g)
	first, err := tensor.Zeros(r.s, tensor.Float32, shape...)
	require.NoError(t, err)
	second, err := tensor.Zeros(r.s, tensor.Float32, shape...)
	require.NoError(t, err)
	config := ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01}
	const rate = 0.01
	lr, err := r.o.Fill(r.s, tensor.Float32, rate)
	require.NoError(t, err)
	step, err := tensor.Zeros(r.s, tensor.Float32)
	require.NoError(t, err)
	one, err := r.o.Fill(r.s, tensor.Float32, 1)
	require.NoError(t, err)
	m, v := make([]float64, len(p.values)), make([]float64, len(p.values))
	state := ops.AdamWState{Param: param, Grad: grad, First: first, Second: second}
	for n := 1; n <= 20; n++ {
		require.NoError(t, r.o.AddInto(r.s, step, step, one))
		require.NoError(t, r.o.AdamW(r.s, state, lr, step, config))
		for i := range p.values {
			m[i] = 0.9*m[i] + 0.1*g.values[i]
			v[i] = 0.999*v[i] + 0.001*g.values[i]*g.values[i]
			p.values[i] *= 1 - rate*0.01
			p.values[i] -= rate * m[i] / (1 - math.Pow(0.9, float64(n))) / (math.Sqrt(v[i]/(1-math.Pow(0.999, float64(n)))) + 1e-8)
		}
	}
	r.near(p.values, param, 1e-5, 1)
	r.near(m, first, 1e-5, 0)
	r.near(v, second, 1e-5, 0)
	config.Beta2 = 1
	err = r.o.AdamW(r.s, state, lr, step, config)
	require.ErrorIs(t, err, ops.ErrNumber)
	require.ErrorContains(t, err, "Beta2 is 1, want 0 or more and less than 1")
}

// Either beta, or both, may be 0, as in PyTorch: the moment then equals the last gradient. Steps of one parameter, of many,
// and of many with the step in memory agree.
func TestAdamWWithoutMoments(t *testing.T) {
	r := newRig(t)
	lr, err := r.o.Fill(r.s, tensor.Float32, 0.01)
	require.NoError(t, err)
	step, err := tensor.Zeros(r.s, tensor.Float32)
	require.NoError(t, err)
	for _, c := range []ops.AdamWConfig{{Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01}, {Beta1: 0.9, Epsilon: 1e-8}, {Epsilon: 1e-8}} {
		x, all, graph := r.trained(tensor.Float32, []int{5, 7}, contiguous), r.trained(tensor.Float32, []int{5, 7}, contiguous), r.trained(tensor.Float32, []int{3}, contiguous)
		for n := 1; n <= 3; n++ {
			require.NoError(t, r.o.FillInto(r.s, step, float64(n)))
			require.NoError(t, r.o.AdamW(r.s, x.state, lr, step, c))
			require.NoError(t, r.o.AdamWAll(r.s, []ops.AdamWState{all.state}, ops.AdamWStep{Rate: 0.01, Step: n}, c))
			require.NoError(t, r.o.AdamWAll(r.s, []ops.AdamWState{graph.state}, ops.AdamWStep{RateAt: lr, StepAt: step}, c))
			for i, x := range []*trained{x, all, graph} {
				x.step(n, 0.01, c)
				r.near(x.p.values, x.state.Param, 1e-5, 1, i, c)
				r.near(x.m.values, x.state.First, 1e-5, 1e-6, i, c)
				r.near(x.v.values, x.state.Second, 1e-5, 1e-9, i, c)
			}
		}
	}
}

// A parameter may have fewer dimensions than rate and step, which have one element each. Other shapes are refused.
func TestAdamWOfAScalar(t *testing.T) {
	r := newRig(t)
	of := func(shape ...int) *tensor.Tensor {
		x, err := r.o.Fill(r.s, tensor.Float32, 1, shape...)
		require.NoError(t, err)
		return x
	}
	config := ops.AdamWConfig{Beta1: 0.5, Beta2: 0.5}
	p := of()
	require.NoError(t, r.o.AdamW(r.s, ops.AdamWState{Param: p, Grad: of(), First: of(), Second: of()}, of(1), of(1, 1), config))
	r.near([]float64{1 - math.Sqrt2}, p, 1e-6, 1)
	for _, c := range []struct {
		param, grad, first, second, rate, step []int
	}{
		{[]int{3}, []int{1}, []int{3}, []int{3}, nil, nil},
		{[]int{3}, nil, []int{3}, []int{3}, nil, nil},
		{[]int{2, 3}, []int{3}, []int{2, 3}, []int{2, 3}, nil, nil},
		{[]int{1}, []int{1}, nil, []int{1}, nil, nil},
		{[]int{3}, []int{3}, []int{3}, []int{3}, []int{3}, nil},
		{[]int{3}, []int{3}, []int{3}, []int{3}, nil, []int{0}},
	} {
		err := r.o.AdamW(r.s, ops.AdamWState{Param: of(c.param...), Grad: of(c.grad...), First: of(c.first...), Second: of(c.second...)},
			of(c.rate...), of(c.step...), config)
		require.ErrorIs(t, err, ops.ErrShape, c)
	}
}

func TestAdamWOfFloat64(t *testing.T) {
	r := newRig(t)
	wide, err := r.o.Fill(r.s, tensor.Float64, 1, 3)
	require.NoError(t, err)
	one := r.tensor(newArray(nil, r.random.NormFloat64))
	var types *expr.TypeError
	require.ErrorAs(t, r.o.AdamW(r.s, ops.AdamWState{Param: wide, Grad: r.made(tensor.Float64, 3), First: wide, Second: wide}, one, one,
		ops.AdamWConfig{Beta1: 0.5, Beta2: 0.5}), &types)
}
