package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// normCase is a layer norm of a sum on the host, of rows of one dimension.
type normCase struct{ sum, weight, bias, grad, dsum array }

// forward returns the norms.
func (c *normCase) forward() (all []float64) {
	columns := len(c.weight.values)
	for i, x := range c.sum.over(1, layerNorm) {
		all = append(all, x*c.weight.values[i%columns]+c.bias.values[i%columns])
	}
	return all
}

// backward returns the gradients.
func (c *normCase) backward() (dx, dweight, dbias []float64) {
	columns := len(c.weight.values)
	dweight, dbias = make([]float64, columns), make([]float64, columns)
	hats := c.sum.over(1, layerNorm)
	for i, row := range c.sum.rows([]int{1}) {
		n := float64(columns)
		mean := sum(row) / n
		factor := 1 / math.Sqrt(sum(mapped(row, func(x float64) float64 { return (x - mean) * (x - mean) }))/n+epsilon)
		plain, along := 0.0, 0.0
		for j := range columns {
			g, hat := c.grad.values[i*columns+j], hats[i*columns+j]
			dweight[j] += g * hat
			dbias[j] += g
			plain += g * c.weight.values[j] / n
			along += g * c.weight.values[j] * hat / n
		}
		for j := range columns {
			g := c.grad.values[i*columns+j] * c.weight.values[j]
			dx = append(dx, (g-plain-hats[i*columns+j]*along)*factor+c.dsum.values[i*columns+j])
		}
	}
	return dx, dweight, dbias
}

// contiguousOf is a contiguous tensor of a type, with the values of an array, converted to the type.
func (r *rig) contiguousOf(of tensor.Type, a array) *tensor.Tensor {
	r.Helper()
	t := r.viewAs(viewContiguous, of, a.shape)
	require.NoError(r, r.o.CopyInto(r.s, t, r.tensor(a)))
	copy(a.values, r.read(t).values)
	return t
}

// A norm of a sum and its gradients equal the reference: of rows of a warp and of a block, with whole vectors and parts of them, of
// so many that blocks have several, and of those for which no block is made.
func TestLayerNormResidual(t *testing.T) {
	r := newRig(t)
	types := []tensor.Type{tensor.BFloat16, tensor.Float16, tensor.Float32}
	for i, shape := range [][]int{
		{0, 8},
		{1, 1},
		{3, 7},
		{1, 8},
		{2, 16},
		{9, 24},
		{5, 248},
		{4, 256},
		{3, 264},
		{2, 768},
		{3, 1024},
		{2, 1032},
		{2, 2056},
		{1, 4096},
		{2200, 8},
		{600, 16},
		{1, 8200},
	} {
		of := types[i%len(types)]
		by := []tensor.Type{tensor.Float32, of}[i%2]
		normal := r.random.NormFloat64
		x, residual, last := newArray(shape, normal), newArray(shape, normal), shape[1:]
		c := normCase{weight: newArray(last, normal), bias: newArray(last, normal), grad: newArray(shape, normal), dsum: newArray(shape, normal)}
		weight, bias := r.contiguousOf(by, c.weight), r.contiguousOf(by, c.bias)
		y, total, err := r.o.LayerNormResidual(r.s, r.of(of, x), r.of(of, residual), weight, bias, 1, epsilon)
		require.NoError(t, err)
		require.Equal(t, []tensor.Type{of, of}, []tensor.Type{y.Type(), total.Type()})
		var exact []float64
		for j := range x.values {
			exact = append(exact, x.values[j]+residual.values[j])
		}
		r.near(exact, total, tolerance(of), 0, "sum", shape)
		c.sum = r.read(total)
		r.near(c.forward(), y, tolerance(of), 1, "norm of the rounded sum", of, shape)

		grad, dsum := r.contiguousOf(of, c.grad), r.contiguousOf(of, c.dsum)
		dx, dweight, dbias, err := r.o.LayerNormResidualBackward(r.s, grad, dsum, total, weight, 1, epsilon)
		require.NoError(t, err)
		require.Equal(t, by, dweight.Type())
		wantX, wantWeight, wantBias := c.backward()
		scale := 1 + math.Sqrt(float64(shape[0]))
		r.near(wantX, dx, max(tolerance(of), 1e-5), 0.05, "dx", of, shape)
		r.near(wantWeight, dweight, max(tolerance(by), 1e-5), scale*0.05, "dweight", of, shape)
		r.near(wantBias, dbias, max(tolerance(by), 1e-5), scale*0.05, "dbias", of, shape)

		again := [3]*tensor.Tensor{dsum, r.made(by, last...), nil} // over an operand, and without the bias
		require.NoError(t, r.o.LayerNormResidualBackwardInto(r.s, again[0], again[1], nil, grad, dsum, total, weight, 1, epsilon))
		require.Equal(t, r.read(dx).values, r.read(dsum).values, "dx over dsum %v", shape)
		require.Equal(t, r.read(dweight).values, r.read(again[1]).values)
	}
}

// The gradient is the derivative of the norm, by differences, plus the gradient of the sum.
func TestLayerNormResidualByDifferences(t *testing.T) {
	r := newRig(t)
	normal := r.random.NormFloat64
	shape := []int{3, 12}
	c := normCase{newArray(shape, normal), newArray(shape[1:], normal), newArray(shape[1:], normal), newArray(shape, normal), newArray(shape, normal)}
	want := changes(func(x []float64) []float64 {
		moved := c
		moved.sum = array{shape, x}
		return moved.forward()
	}, c.sum.values, c.grad.values)
	for i := range want {
		want[i] += c.dsum.values[i]
	}
	wantWeight := changes(func(x []float64) []float64 {
		moved := c
		moved.weight = array{shape[1:], x}
		return moved.forward()
	}, c.weight.values, c.grad.values)
	all := [4]*tensor.Tensor{}
	for i, a := range []array{c.grad, c.dsum, c.sum, c.weight} {
		all[i] = r.contiguousOf(tensor.Float32, a)
	}
	dx, dweight, _, err := r.o.LayerNormResidualBackward(r.s, all[0], all[1], all[2], all[3], 1, epsilon)
	require.NoError(t, err)
	r.near(want, dx, 1e-4, 1)
	r.near(wantWeight, dweight, 1e-4, 1)
}

// The gradients of special rows equal those by a launch for each output: equal elements, NaN, infinities, and large numbers.
func TestSpecialRowsOfLayerNormBackward(t *testing.T) {
	r := newRig(t)
	inf, nan := math.Inf(1), math.NaN()
	for _, row := range [][]float64{
		{1e8, 1e8, 1e8, 1e8}, {1, nan, 2, 3}, {1, inf, 2, 3}, {-inf, 1, 2, 3}, {0, 0, 0, 0}, {3e38, -3e38, 1, 2}, {1e-30, 2e-30, 0, 1e-30},
	} {
		for _, of := range []tensor.Type{tensor.Float32, tensor.BFloat16} {
			a, g := array{shape: []int{1, 8}}, newArray([]int{1, 8}, r.random.NormFloat64)
			a.values = append(append(a.values, row...), row...)
			x, grad := r.contiguousOf(of, a), r.contiguousOf(of, g)
			fused, _, _, err := r.o.LayerNormBackward(r.s, grad, x, nil, 1, epsilon)
			require.NoError(t, err)
			alone := r.made(of, 1, 8)
			require.NoError(t, r.o.LayerNormBackwardInto(r.s, alone, nil, nil, grad, x, nil, 1, epsilon))
			r.near(r.read(alone).values, fused, max(tolerance(of), 1e-5), 1e-3, of, row)
		}
	}
}

// Repeated gradients have the same bits, in a graph, too.
func TestLayerNormResidualRepeats(t *testing.T) {
	r := newRig(t)
	shape := []int{301, 40}
	normal := r.random.NormFloat64
	drawn := func() *tensor.Tensor { return r.contiguousOf(tensor.BFloat16, newArray(shape, normal)) }
	x, residual, grad := drawn(), drawn(), drawn()
	weight := r.contiguousOf(tensor.Float32, newArray(shape[1:], normal))
	y, total, dx := r.made(tensor.BFloat16, shape...), r.made(tensor.BFloat16, shape...), r.made(tensor.BFloat16, shape...)
	dweight, dbias := r.zeros(40), r.zeros(40)
	work := func() error {
		if err := r.o.LayerNormResidualInto(r.c, y, total, x, residual, weight, nil, 1, epsilon); err != nil {
			return err
		}
		return r.o.LayerNormResidualBackwardInto(r.c, dx, dweight, dbias, grad, grad, total, weight, 1, epsilon)
	}
	all := func() (values [][]float64) {
		for _, t := range []*tensor.Tensor{y, total, dx, dweight, dbias} {
			values = append(values, r.read(t).values)
		}
		return values
	}
	require.NoError(t, work())
	want := all()
	g, err := r.c.Capture(work)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, r.o.FillInto(r.c, dweight, 7))
		require.NoError(t, g.Launch(r.c))
		require.Equal(t, want, all())
	}
	require.NoError(t, g.Close())
}

// The sum has the promoted type of both, and the norm that type where it is of floating-point numbers, else float32.
func TestTypesOfLayerNormResidual(t *testing.T) {
	r := newRigOn(t, launching(t))
	for _, a := range tensor.Types() {
		for _, b := range tensor.Types() {
			want := expr.Promote(a, b)
			if want == tensor.Bool { // which have no sum
				continue
			}
			y, sum, err := r.o.LayerNormResidual(r.s, r.made(a, 2, 3), r.made(b, 2, 3), nil, nil, 1, epsilon)
			require.NoError(t, err, "%v %v", a, b)
			require.Equal(t, want, sum.Type(), "%v %v", a, b)
			if want.Kind() != tensor.Floating {
				want = tensor.Float32
			}
			require.Equal(t, want, y.Type(), "%v %v", a, b)
		}
	}
}

func TestMistakesOfLayerNormResidual(t *testing.T) {
	r := newRig(t)
	x, y, z := r.zeros(4, 8), r.zeros(4, 8), r.zeros(4, 8)
	_, _, err := r.o.LayerNormResidual(r.s, x, r.zeros(8), nil, nil, 1, epsilon)
	require.ErrorIs(t, err, ops.ErrShape)
	_, _, err = r.o.LayerNormResidual(r.s, x, y, r.zeros(4), nil, 1, epsilon)
	require.ErrorIs(t, err, ops.ErrShape)
	_, _, err = r.o.LayerNormResidual(r.s, x, y, nil, nil, 3, epsilon)
	require.ErrorIs(t, err, ops.ErrAxes)
	require.ErrorIs(t, r.o.LayerNormResidualInto(r.s, z, z, x, y, nil, nil, 1, epsilon), kernel.ErrOverlap)
	_, _, _, err = r.o.LayerNormResidualBackward(r.s, x, r.zeros(8), y, nil, 1, epsilon)
	require.ErrorIs(t, err, ops.ErrShape)
	_, _, _, err = r.o.LayerNormResidualBackward(r.s, x, nil, y, nil, 1, epsilon)
	require.ErrorIs(t, err, tensor.ErrNoTensor)
	require.ErrorIs(t, r.o.LayerNormResidualBackwardInto(r.s, z, r.zeros(8), r.zeros(7), x, y, y, nil, 1, epsilon), ops.ErrShape)
	row, err := z.Narrow(0, 0, 1)
	require.NoError(t, err)
	row, err = row.Reshape(8)
	require.NoError(t, err)
	require.ErrorIs(t, r.o.LayerNormResidualBackwardInto(r.s, z, row, nil, x, y, y, nil, 1, epsilon), kernel.ErrOverlap)
}
