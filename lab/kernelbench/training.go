package kernelbench

import (
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// training are the operations of a training step that PyTorch has in several: on bfloat16, with weights and moments of float32.
// Their operands are made on the device, and the first row of a result is compared.
func (b *rig) training(s *tensor.Scope, w workload, shape []int) (*job, error) {
	switch w.Op {
	case opCrossEntropy:
		return b.crossEntropy(s, shape)
	case opPlainNorm:
		return b.plainNorm(s, shape)
	case opPlainNormBackward:
		return b.plainNormBackward(s, shape)
	case opResidualNorm:
		return b.residualNorm(s, shape)
	case opResidualNormBackward:
		return b.residualNormBackward(s, shape)
	case opEmbeddingBackward:
		return b.embeddingBackward(s, shape)
	case opGradNorm, opAdamW:
		return b.optimizer(s, w, shape)
	}
	return nil, fmt.Errorf("no operation %q", w.Op)
}

// drawn makes tensors of normal numbers.
func (b *rig) drawn(s *tensor.Scope, of tensor.Type, shapes ...[]int) ([]*tensor.Tensor, error) {
	var all []*tensor.Tensor
	for _, shape := range shapes {
		b.taken++
		t, err := b.ops.Normal(s, of, ops.Random{Seed: uint64(b.taken)}, 0, 1, shape...) //nolint:gosec // not negative
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// numbers returns the numbers of a row.
func (b *rig) numbers(s *tensor.Scope, t *tensor.Tensor, at int) ([]float64, error) {
	if t.Rank() > 1 {
		var err error
		if t, err = t.Narrow(0, at, 1); err != nil {
			return nil, err
		}
	}
	wide, err := b.ops.Cast(s, t, tensor.Float64)
	if err != nil {
		return nil, err
	}
	return tensor.Read[float64](wide)
}

// firstRows returns the first rows of tensors, or the whole of one of one dimension.
func (b *rig) firstRows(s *tensor.Scope, all ...*tensor.Tensor) (rows [][]float64, err error) {
	for _, t := range all {
		row, err := b.numbers(s, t, 0)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// first makes a job that compares the first row of a tensor.
func first(out *tensor.Tensor, run func() error, want func(i int) (want, scale float64)) (*job, error) {
	out, err := out.Narrow(0, 0, 1)
	const bfloat16Error = 1.0 / 128 // also of float32 numbers of such operands
	return &job{run: run, out: out, tolerance: bfloat16Error, want: want}, err
}

// indices are numbers below a limit, in no order.
func indices(count, below int) []int64 {
	all := make([]int64, count)
	for i := range all {
		const prime = 7919
		all[i] = int64(i * prime % below)
	}
	return all
}

func (b *rig) crossEntropy(s *tensor.Scope, shape []int) (*job, error) {
	all, err := b.drawn(s, tensor.BFloat16, shape)
	if err != nil {
		return nil, err
	}
	targets, err := tensor.From(s, indices(shape[0], shape[1]))
	if err != nil {
		return nil, err
	}
	numbers, err := b.firstRows(s, all...)
	if err != nil {
		return nil, err
	}
	loss, err := tensor.New(s, tensor.Float32)
	if err != nil {
		return nil, err
	}
	losses, err := tensor.New(s, tensor.Float32, shape[0])
	if err != nil {
		return nil, err
	}
	total := 0.0
	for _, x := range numbers[0] {
		total += math.Exp(x)
	}
	how := ops.LossGradient{Mean: true}
	run := func() error { return b.ops.CrossEntropyGradientInto(b.c, loss, losses, all[0], targets, how) }
	j, err := first(all[0], run, func(i int) (want, scale float64) {
		want = math.Exp(numbers[0][i]) / total
		if i == 0 { // the target
			want--
		}
		return want / float64(shape[0]), math.Abs(want) / float64(shape[0])
	})
	if err == nil {
		j.once = true
	}
	return j, err
}

func (b *rig) residualNorm(s *tensor.Scope, shape []int) (*job, error) {
	all, err := b.drawn(s, tensor.BFloat16, shape, shape, shape, shape, shape[1:], shape[1:])
	if err != nil {
		return nil, err
	}
	y, sum, x, residual, weight, bias := all[0], all[1], all[2], all[3], all[4], all[5]
	run := func() error { return b.ops.LayerNormResidualInto(b.c, y, sum, x, residual, weight, bias, 1, epsilon) }
	n, err := b.firstRows(s, x, residual, weight, bias)
	if err != nil {
		return nil, err
	}
	_, hats := normalized(added(n[0], n[1]))
	return first(y, run, normOf(hats, n[2], n[3]))
}

func (b *rig) residualNormBackward(s *tensor.Scope, shape []int) (*job, error) {
	all, err := b.drawn(s, tensor.BFloat16, shape, shape, shape, shape, shape[1:], shape[1:], shape[1:])
	if err != nil {
		return nil, err
	}
	dx, grad, dsum, sum, weight, dweight, dbias := all[0], all[1], all[2], all[3], all[4], all[5], all[6]
	run := func() error {
		return b.ops.LayerNormResidualBackwardInto(b.c, dx, dweight, dbias, grad, dsum, sum, weight, 1, epsilon)
	}
	n, err := b.firstRows(s, grad, dsum, sum, weight)
	if err != nil {
		return nil, err
	}
	return first(dx, run, normGradient(n[0], n[2], n[3], n[1]))
}

// embeddingBackward has the shape of tokens, rows of the table, and elements of a row.
func (b *rig) embeddingBackward(s *tensor.Scope, shape []int) (*job, error) {
	tokens, rows, width := shape[0], shape[1], shape[2]
	all, err := b.drawn(s, tensor.BFloat16, []int{tokens, width}, []int{rows, width})
	if err != nil {
		return nil, err
	}
	numbers := indices(tokens, rows)
	by, err := tensor.From(s, numbers)
	if err != nil {
		return nil, err
	}
	total, size := make([]float64, width), make([]float64, width)
	for token, row := range numbers {
		if row != 0 {
			continue
		}
		grad, err := b.numbers(s, all[0], token)
		if err != nil {
			return nil, err
		}
		for i, g := range grad {
			total[i] += g
			size[i] += math.Abs(g)
		}
	}
	run := func() error { return b.ops.EmbeddingBackwardInto(b.c, all[1], all[0], by) }
	return first(all[1], run, func(i int) (want, scale float64) { return total[i], size[i] })
}

// optimizer has so many tensors of so many elements.
func (b *rig) optimizer(s *tensor.Scope, w workload, shape []int) (*job, error) {
	count, length := shape[0], shape[1]
	const gradient = 0.5
	filled := func(of tensor.Type, x float64) (*tensor.Tensor, error) { return b.ops.Fill(s, of, x, length) }
	var grads []*tensor.Tensor
	var states []ops.AdamWState
	for range count {
		g, err := filled(tensor.BFloat16, gradient)
		if err != nil {
			return nil, err
		}
		if grads = append(grads, g); w.Op == opGradNorm {
			continue
		}
		var all [4]*tensor.Tensor
		for i, of := range [...]tensor.Type{tensor.Float32, tensor.Float32, tensor.Float32, tensor.BFloat16} {
			x := 0.0
			if i == 0 {
				x = 1
			}
			if all[i], err = filled(of, x); err != nil {
				return nil, err
			}
		}
		states = append(states, ops.AdamWState{Param: all[0], Grad: g, First: all[1], Second: all[2], Copy: all[3]})
	}
	if w.Op == opAdamW {
		const rate, decay = 1e-3, 0.01
		run := func() error {
			return b.ops.AdamWAll(b.c, states, ops.AdamWStep{Rate: rate, Step: 1}, ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Decay: decay})
		}
		want := 1 - rate*decay - rate
		return &job{run: run, out: states[0].Param, tolerance: 1e-6, once: true, want: func(int) (_, scale float64) { return want, want }}, nil
	}
	out, err := b.drawn(s, tensor.Float32, []int{1}, []int{1})
	if err != nil {
		return nil, err
	}
	finite, err := tensor.New(s, tensor.Bool)
	if err != nil {
		return nil, err
	}
	run := func() error { return b.ops.GradNormInto(b.c, out[0], out[1], finite, grads, 1) }
	want := gradient * math.Sqrt(float64(count*length))
	return &job{run: run, out: out[0], tolerance: 1e-5, want: func(int) (_, scale float64) { return want, want }}, nil
}

// added adds numbers.
func added(x, y []float64) []float64 {
	all := make([]float64, len(x))
	for i := range x {
		all[i] = x[i] + y[i]
	}
	return all
}

// normalized returns the norm of a row, and its factor.
func normalized(row []float64) (factor float64, all []float64) {
	mean, variance, n := 0.0, 0.0, float64(len(row))
	for _, x := range row {
		mean += x / n
	}
	for _, x := range row {
		variance += (x - mean) * (x - mean) / n
	}
	factor = 1 / math.Sqrt(variance+epsilon)
	for _, x := range row {
		all = append(all, (x-mean)*factor)
	}
	return factor, all
}

// trainingBytes returns the bytes that an operation of a training step must read and write.
func (w workload) trainingBytes(shape []int) int64 {
	const half = 2
	n := int64(shape[0]) * int64(shape[1])
	switch w.Op {
	case opCrossEntropy:
		return 2*half*n + (8+4)*int64(shape[0])
	case opPlainNorm:
		return 2 * half * n
	case opPlainNormBackward:
		return 3 * half * n
	case opResidualNorm, opResidualNormBackward:
		return 4 * half * n
	case opEmbeddingBackward: // gradient, table and indices
		return half*int64(shape[2])*int64(shape[0]+shape[1]) + 8*int64(shape[0])
	case opGradNorm:
		return half * n
	case opAdamW: // parameter and moments twice, gradient and copy
		return (6*4 + 2*half) * n
	}
	return 0
}
