package kernelbench

import (
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/cuda/gemm"
)

// job is an operation on one set of operands.
type job struct {
	run func() error // submits it
	by  string       // the way of a product; set by run

	out       *tensor.Tensor
	parts     []*job // it runs these, and has no result of its own
	once      bool   // each run changes the result: the first one is compared
	checked   bool
	tolerance float64
	want      func(i int) (want, scale float64) // of compare
}

// check compares the result with the host's, after run.
func (j *job) check() error {
	if j.once && j.checked {
		return nil
	}
	if len(j.parts) > 0 {
		return j.checkParts()
	}
	j.checked = true
	return compare(j.out, j.tolerance, j.want)
}

// epsilon is the epsilon of layer norm.
const epsilon = 1e-5

// job makes the operands of a row, which belong to the scope, and the operation on them.
func (b *rig) job(s *tensor.Scope, w workload, shape []int, choice matmul.Choice) (*job, error) {
	switch w.Op {
	case opMatmul:
		return b.product(s, w, shape, choice)
	case opLinear, opLinearGelu, opLinearInputs, opLinearWeights:
		return b.linear(s, w, shape, choice)
	case opLinearBlock:
		return b.linearBlock(s, shape, choice)
	case opAdd, opFused, opBias:
		return b.binary(s, w, shape)
	case opGelu, opSoftmax, opLayerNorm, opTranspose:
		return b.unary(s, w, shape)
	case opAttention, opTrainedAttention, opPagedAttention:
		return b.attention(s, w, shape)
	case opSum, opRowSums, opColumnSums, opVariance, opArgMax:
		return b.reduction(s, w, shape)
	}
	return b.training(s, w, shape)
}

// binary has two operands.
func (b *rig) binary(s *tensor.Scope, w workload, shape []int) (*job, error) {
	x, xs, err := b.operand(s, shape...)
	if err != nil {
		return nil, err
	}
	second := shape
	if w.Op == opBias {
		second = shape[1:]
	}
	y, ys, err := b.operand(s, second...)
	if err != nil {
		return nil, err
	}
	out, err := tensor.New(s, tensor.Float32, shape...)
	if err != nil {
		return nil, err
	}
	j := &job{out: out, tolerance: 1e-6}
	if w.Op != opFused {
		j.run = func() error { return b.ops.AddInto(b.c, out, x, y) }
		j.want = func(i int) (want, scale float64) {
			v, u := float64(xs[i]), float64(ys[i%len(ys)])
			return v + u, math.Abs(v) + math.Abs(u)
		}
		return j, nil
	}
	e, f := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32)
	k, err := b.kernels.Elementwise(e.Mul(f).Add(e).Relu().Mul(expr.Number(2)).Sub(f))
	if err != nil {
		return nil, err
	}
	outputs := []*tensor.Tensor{out}
	j.run = func() error { return k.Run(b.c, outputs, x, y) }
	j.want = func(i int) (want, scale float64) {
		v, u := float64(xs[i]), float64(ys[i])
		return max(v*u+v, 0)*2 - u, 2*(math.Abs(v*u)+math.Abs(v)) + math.Abs(u)
	}
	return j, nil
}

// unary has one operand, and a result with as many elements.
func (b *rig) unary(s *tensor.Scope, w workload, shape []int) (*job, error) {
	x, xs, err := b.operand(s, shape...)
	if err != nil {
		return nil, err
	}
	cols := shape[len(shape)-1]
	if w.Op == opTranspose {
		shape = []int{cols, shape[0]}
	}
	out, err := tensor.New(s, tensor.Float32, shape...)
	if err != nil {
		return nil, err
	}
	switch w.Op {
	case opGelu:
		return &job{run: func() error { return b.ops.GeluInto(b.c, out, x) }, out: out, tolerance: 1e-5, want: gelu(xs)}, nil
	case opSoftmax:
		return &job{run: func() error { return b.ops.SoftmaxInto(b.c, out, x, -1) }, out: out, tolerance: 2e-5, want: softmax(xs, cols)}, nil
	case opTranspose:
		turned, err := x.Transpose(0, 1)
		if err != nil {
			return nil, err
		}
		want := func(i int) (want, scale float64) { return float64(xs[i%shape[1]*cols+i/shape[1]]), 0 }
		return &job{run: func() error { return b.ops.CopyInto(b.c, out, turned) }, out: out, want: want}, nil
	}
	weight, weights, err := b.operand(s, cols)
	if err != nil {
		return nil, err
	}
	bias, biases, err := b.operand(s, cols)
	if err != nil {
		return nil, err
	}
	run := func() error { return b.ops.LayerNormInto(b.c, out, x, weight, bias, 1, epsilon) }
	return &job{run: run, out: out, tolerance: 1e-4, want: layerNorm(xs, weights, biases)}, nil
}

// reduction has one operand, and a result with fewer elements.
func (b *rig) reduction(s *tensor.Scope, w workload, shape []int) (*job, error) {
	x, xs, err := b.operand(s, shape...)
	if err != nil {
		return nil, err
	}
	of, result, cols := tensor.Float32, []int{}, shape[len(shape)-1]
	switch w.Op {
	case opRowSums, opVariance:
		result = shape[:1]
	case opArgMax:
		of, result = tensor.Int64, shape[:1]
	case opColumnSums:
		result = shape[1:]
	}
	out, err := tensor.New(s, of, result...)
	if err != nil {
		return nil, err
	}
	j := &job{out: out, tolerance: 1e-6}
	switch w.Op {
	case opVariance:
		var k *kernel.Kernel
		if k, err = b.kernels.Reduction([]int{-1}, expr.Input(0, tensor.Float32).Var(0)); err != nil {
			return nil, err
		}
		outputs := []*tensor.Tensor{out}
		j.run = func() error { return k.Run(b.c, outputs, x) }
		j.tolerance, j.want = 1e-5, variance(xs, cols)
	case opArgMax:
		j.run = func() error { return b.ops.ArgMaxInto(b.c, out, x, -1) }
		j.want = argMax(xs, cols)
	case opColumnSums:
		j.run = func() error { return b.ops.SumInto(b.c, out, x, 0) }
		j.want = func(i int) (want, scale float64) { return sum(xs[i:], cols) }
	case opRowSums:
		j.run = func() error { return b.ops.SumInto(b.c, out, x, -1) }
		j.want = func(i int) (want, scale float64) { return sum(xs[i*cols:(i+1)*cols], 1) }
	default:
		j.run = func() error { return b.ops.SumInto(b.c, out, x) }
		j.want = func(int) (want, scale float64) { return sum(xs, 1) }
	}
	return j, nil
}

// precision returns a product's precision by its name in the list, with the error relative to the norms.
func precision(name string) (p gemm.Precision, of tensor.Type, tolerance float64, err error) {
	switch name {
	case "fp32":
		return gemm.IEEE, tensor.Float32, 1e-5, nil
	case "3xtf32":
		return gemm.TF32x3, tensor.Float32, 1e-5, nil
	case "tf32":
		return gemm.TF32, tensor.Float32, 1e-3, nil
	case "bf16":
		return gemm.IEEE, tensor.BFloat16, 1e-2, nil
	}
	return 0, 0, 0, fmt.Errorf("no precision %q", name)
}

// product is a product of matrices.
func (b *rig) product(s *tensor.Scope, w workload, shape []int, choice matmul.Choice) (*job, error) {
	p, of, tolerance, err := precision(w.Precision)
	if err != nil {
		return nil, err
	}
	rows, cols, length := shape[0], shape[1], shape[2]
	x, xs, err := b.matrix(s, of, rows, length)
	if err != nil {
		return nil, err
	}
	y, ys, err := b.matrix(s, of, length, cols)
	if err != nil {
		return nil, err
	}
	out, err := tensor.New(s, of, rows, cols)
	if err != nil {
		return nil, err
	}
	how := ops.Product{Precision: p, Choice: choice}
	j := &job{out: out, tolerance: tolerance, want: dot(xs, ys, cols, length)}
	j.run = func() error {
		path, err := b.ops.MatmulInto(b.c, out, x, y, how)
		if err == nil && j.by == "" {
			j.by = path.String()
		}
		return err
	}
	return j, nil
}

// matrix returns a matrix of random numbers of a type.
func (b *rig) matrix(s *tensor.Scope, of tensor.Type, rows, cols int) (*tensor.Tensor, []float32, error) {
	if of == tensor.Float32 {
		return b.operand(s, rows, cols)
	}
	values := b.random(rows * cols)
	rounded := make([]half.BFloat16, len(values))
	for i, v := range values {
		rounded[i] = half.NewBFloat16(v)
	}
	t, err := tensor.From(s, rounded, rows, cols)
	return t, values, err
}
