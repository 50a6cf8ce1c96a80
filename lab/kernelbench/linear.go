package kernelbench

import (
	"errors"
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda/gemm"
)

// linear are the products of a linear layer of bfloat16, of a shape of rows, outputs and inputs: of x and the weights, of the
// gradient and the weights, and of the gradient and x, which is added to gradients of float32 where PyTorch makes new ones of
// bfloat16. Weights are outputs by inputs, as PyTorch has them.
func (b *rig) linear(s *tensor.Scope, w workload, shape []int, choice matmul.Choice) (*job, error) {
	rows, outputs, inputs := shape[0], shape[1], shape[2]
	all, err := b.drawn(s, tensor.BFloat16, []int{rows, inputs}, []int{outputs, inputs}, []int{rows, outputs}, []int{outputs})
	if err != nil {
		return nil, err
	}
	x, weight, grad, bias := all[0], all[1], all[2], all[3]
	switch w.Op {
	case opLinear:
		return b.linearJob(s, x, weight, ops.Product{Choice: choice}, [2]bool{false, true}, tensor.BFloat16)
	case opLinearGelu:
		operand, err := tensor.New(s, tensor.BFloat16, rows, outputs)
		if err != nil {
			return nil, err
		}
		how := ops.Product{Choice: choice, Bias: bias, Epilogue: gemm.GELUAux, Aux: operand}
		return b.linearJob(s, x, weight, how, [2]bool{false, true}, tensor.BFloat16)
	case opLinearInputs:
		return b.linearJob(s, grad, weight, ops.Product{Choice: choice}, [2]bool{}, tensor.BFloat16)
	}
	return b.linearJob(s, grad, x, ops.Product{Choice: choice, Add: true}, [2]bool{true, false}, tensor.Float32)
}

// linearJob multiplies matrices, which are transposed first where turned says so.
func (b *rig) linearJob(s *tensor.Scope, x, y *tensor.Tensor, how ops.Product, turned [2]bool, of tensor.Type) (*job, error) {
	pair := [2]*tensor.Tensor{x, y}
	for i, turn := range turned {
		var err error
		if !turn {
			continue
		}
		if pair[i], err = pair[i].Transpose(0, 1); err != nil {
			return nil, err
		}
	}
	out, err := b.ops.Fill(s, of, 0, pair[0].Dim(0), pair[1].Dim(1))
	if err != nil {
		return nil, err
	}
	row, err := b.numbers(s, pair[0], 0)
	if err != nil {
		return nil, err
	}
	matrix, err := b.all(s, pair[1])
	if err != nil {
		return nil, err
	}
	bias := make([]float64, out.Dim(1))
	if how.Bias != nil {
		if bias, err = b.all(s, how.Bias); err != nil {
			return nil, err
		}
	}
	var j *job
	run := func() error {
		path, err := b.ops.MatmulInto(b.c, out, pair[0], pair[1], how)
		if err == nil && j.by == "" {
			j.by = path.String()
		}
		return err
	}
	if j, err = first(out, run, func(i int) (want, scale float64) {
		size := 0.0
		for k, v := range row {
			term := v * matrix[k*len(bias)+i]
			want += term
			size += term * term
		}
		want += bias[i]
		if how.Epilogue == gemm.GELUAux {
			want = 0.5 * want * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(want+0.044715*want*want*want)))
		}
		return want, math.Abs(want) + math.Sqrt(size)
	}); err != nil {
		return nil, err
	}
	j.once = how.Add
	return j, nil
}

// all returns the numbers of a tensor.
func (b *rig) all(s *tensor.Scope, t *tensor.Tensor) ([]float64, error) {
	wide, err := b.ops.Cast(s, t, tensor.Float64)
	if err != nil {
		return nil, err
	}
	return tensor.Read[float64](wide)
}

// linearLayers are the outputs and inputs of the linear layers of a block of a transformer, as multiples of its width.
var linearLayers = [...][2]int{{3, 1}, {1, 1}, {4, 1}, {1, 4}} //nolint:gochecknoglobals // a constant table

// linearBlock computes all products of the linear layers of a block, one after the other: of a shape of rows and width.
func (b *rig) linearBlock(s *tensor.Scope, shape []int, choice matmul.Choice) (*job, error) {
	var jobs []*job
	for _, op := range [...]string{opLinear, opLinearInputs, opLinearWeights} {
		for _, layer := range linearLayers {
			j, err := b.linear(s, workload{Op: op}, []int{shape[0], layer[0] * shape[1], layer[1] * shape[1]}, choice)
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, j)
		}
	}
	run := func() error {
		for _, j := range jobs {
			if err := j.run(); err != nil {
				return err
			}
		}
		return nil
	}
	return &job{run: run, by: fmt.Sprintf("%d products", len(jobs)), parts: jobs}, nil
}

// checkParts checks the results of a job of several.
func (j *job) checkParts() error {
	var err error
	for _, part := range j.parts {
		err = errors.Join(err, part.check())
	}
	return err
}

// plainNorm is layer norm of bfloat16 alone.
func (b *rig) plainNorm(s *tensor.Scope, shape []int) (*job, error) {
	all, err := b.drawn(s, tensor.BFloat16, shape, shape, shape[1:], shape[1:])
	if err != nil {
		return nil, err
	}
	y, x, weight, bias := all[0], all[1], all[2], all[3]
	run := func() error { return b.ops.LayerNormInto(b.c, y, x, weight, bias, 1, epsilon) }
	n, err := b.firstRows(s, x, weight, bias)
	if err != nil {
		return nil, err
	}
	_, hats := normalized(n[0])
	return first(y, run, normOf(hats, n[1], n[2]))
}

// normOf is a row of a norm by weights and biases.
func normOf(hats, weights, biases []float64) func(i int) (want, scale float64) {
	return func(i int) (want, scale float64) {
		return hats[i]*weights[i] + biases[i], 1 + math.Abs(hats[i]*weights[i]) + math.Abs(biases[i])
	}
}

// plainNormBackward is the gradient of plainNorm.
func (b *rig) plainNormBackward(s *tensor.Scope, shape []int) (*job, error) {
	all, err := b.drawn(s, tensor.BFloat16, shape, shape, shape, shape[1:], shape[1:], shape[1:])
	if err != nil {
		return nil, err
	}
	dx, grad, x, weight, dweight, dbias := all[0], all[1], all[2], all[3], all[4], all[5]
	run := func() error { return b.ops.LayerNormBackwardInto(b.c, dx, dweight, dbias, grad, x, weight, 1, epsilon) }
	n, err := b.firstRows(s, grad, x, weight)
	if err != nil {
		return nil, err
	}
	return first(dx, run, normGradient(n[0], n[1], n[2], make([]float64, len(n[0]))))
}

// normGradient is a row of the gradient of a norm, and another gradient.
func normGradient(grads, xs, weights, others []float64) func(i int) (want, scale float64) {
	factor, hats := normalized(xs)
	plain, along, count := 0.0, 0.0, float64(len(hats))
	for i, hat := range hats {
		g := grads[i] * weights[i]
		plain += g / count
		along += g * hat / count
	}
	return func(i int) (want, scale float64) {
		g := grads[i] * weights[i]
		return (g-plain-hats[i]*along)*factor + others[i], 1 + math.Abs(g*factor) + math.Abs(others[i])
	}
}
