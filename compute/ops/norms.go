package ops

import (
	"cmp"
	"math"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// LayerNormResidual returns LayerNorm of the sum of x and a residual of the same shape, and that sum, which later layers and
// LayerNormResidualBackward take. The norm reads the sum as it is stored: rounded to its type.
func (o Rows) LayerNormResidual(at tensor.Context, x, residual, weight, bias *tensor.Tensor, dims int, epsilon float64) (y, sum *tensor.Tensor, err error) {
	of := expr.Promote(x.Type(), residual.Type())
	norm := sized(opLayerNormResidual, of, x.Shape(), x, residual)
	if of.Valid() && of.Kind() != tensor.Floating {
		norm.of = tensor.Float32
	}
	all, err := createAll(at, func(all [maxSteps]*tensor.Tensor) error {
		return o.LayerNormResidualInto(at, all[0], all[1], x, residual, weight, bias, dims, epsilon)
	}, norm, sized(opLayerNormResidual, of, x.Shape(), x, residual))
	return all[0], all[1], err
}

// LayerNormResidualInto writes LayerNormResidual to tensors, in one launch, which reads and writes each of the four once where a
// row has at most 32,768 elements. The sum has the promoted type of x and residual. Errors: ErrAxes, ErrShape.
func (o Rows) LayerNormResidualInto(at tensor.Context, y, sum, x, residual, weight, bias *tensor.Tensor, dims int, epsilon float64) error {
	all := [4]*tensor.Tensor{x, residual}
	n := 2
	along, err := lastAxes(x.Rank(), dims)
	if err == nil {
		err = fitsLast(x, dims, weight, bias)
	}
	if err == nil && (!sameShape(y, x) || !sameShape(sum, x) || !sameShape(residual, x)) {
		err = ErrShape
	}
	k := key{op: opLayerNormResidual, axes: along, numbers: [4]uint64{math.Float64bits(epsilon)}}
	if k.out = y.Type(); err == nil && (!k.out.Valid() || !sum.Type().Valid()) {
		err = tensor.ErrNoTensor
	}
	if err != nil {
		return failed(k.op, err, given(y, sum), given(x, residual, weight, bias)...)
	}
	n += k.affine(all[n:], weight, bias)
	return o.set.several(at, k, []*tensor.Tensor{y, sum}, all[:n]...)
}

// residual returns the norm of a sum, and the sum.
func (k *key) residual() []expr.Expr {
	x, residual := k.input(0), k.input(1)
	sum := x.Add(residual)
	if of := sum.Type; of == tensor.Float16 || of == tensor.BFloat16 {
		sum = x.Cast(tensor.Float32).Add(residual.Cast(tensor.Float32)).Cast(of) // rounded once, before the norm
	}
	return []expr.Expr{k.weighted(sum.LayerNorm(k.number(0)), 2), sum}
}

// LayerNormResidualBackward returns the gradients of the operands of LayerNormResidual: dx belongs to x and to the
// residual alike. grad is the gradient of the norm, dsum the gradient of the sum by the layers that take it, and sum the sum itself.
func (o rowGradients) LayerNormResidualBackward(
	at tensor.Context, grad, dsum, sum, weight *tensor.Tensor, dims int, epsilon float64,
) (dx, dweight, dbias *tensor.Tensor, err error) {
	all, err := createAll(at, func(all [maxSteps]*tensor.Tensor) error {
		return o.LayerNormResidualBackwardInto(at, all[0], all[1], all[2], grad, dsum, sum, weight, dims, epsilon)
	}, normOutputs(opLayerNormResidualBackward, 3, grad, sum, weight, dims)...)
	return all[0], all[1], all[2], err
}

// LayerNormResidualBackwardInto writes LayerNormResidualBackward to tensors, by the launches of LayerNormBackwardInto. dx may be
// dsum, grad or sum.
func (o rowGradients) LayerNormResidualBackwardInto(
	at tensor.Context, dx, dweight, dbias, grad, dsum, sum, weight *tensor.Tensor, dims int, epsilon float64,
) error {
	var err error
	if !dsum.Type().Valid() {
		err = tensor.ErrNoTensor
	} else if !sameShape(dsum, sum) {
		err = ErrShape
	}
	if err != nil {
		return failed(opLayerNormResidualBackward, err, given(dx, dweight, dbias), given(grad, dsum, sum, weight)...)
	}
	return o.normInto(at, opLayerNormResidualBackward, [3]*tensor.Tensor{dx, dweight, dbias}, normOperands{grad, sum, weight, dsum}, dims, epsilon)
}

// normOperands are the operands of the gradients of a norm. A weight and another gradient that is added may be nil.
type normOperands struct{ grad, x, weight, added *tensor.Tensor }

// all returns those that are not nil.
func (n *normOperands) all() []*tensor.Tensor { return given(n.grad, n.x, n.weight, n.added) }

// fused computes all gradients of a layer norm in one pass over the rows, and one over the sums of its blocks, where a block can
// have the rows: of one type, contiguous, aligned, and of at most 8,192 elements; and where no sum is over an operand.
func (o rowGradients) fused(at tensor.Context, outs [3]*tensor.Tensor, n *normOperands, dims int, epsilon float64) (done bool, err error) {
	dx, dweight, dbias := outs[0], outs[1], outs[2]
	if dx == nil || n.x.Len() == 0 {
		return false, nil
	}
	sum := cmp.Or(dweight, dbias) // one of both, for its type
	if sum == nil {
		return false, nil
	}
	columns := 1
	for d := 1; d <= dims; d++ {
		columns *= n.x.Dim(-d)
	}
	rows := n.x.Len() / columns
	of, by := n.x.Type(), tensor.Type(0)
	if n.weight != nil {
		by = n.weight.Type()
	}
	k, found := routine.NormKernel(of, by, columns, n.added != nil)
	if !found || rows > math.MaxInt32 || !n.dense(dx, of) {
		return false, nil
	}
	for _, out := range [...]*tensor.Tensor{dweight, dbias} {
		if apart, err := n.sums(out, dx, sum.Type()); !apart || err != nil {
			return false, err
		}
	}
	c, err := tensor.ContextOf(at)
	if err != nil {
		return false, err
	}
	blocks := min((rows+k.NormRows()-1)/k.NormRows(), routine.NormBlocks)
	l, err := layout.Of(blocks * k.PartialLen())
	if err != nil {
		return false, err
	}
	return true, temporary(at, tensor.Float32, l, func(partial *tensor.Tensor) error {
		f := o.set.frame()
		defer f.release()
		f.args = append(f.args, word(rows), word(columns))
		if err := f.pointers(cuda.In, n.grad, n.x, n.weight, n.added); err != nil {
			return err
		}
		if err := f.pointers(cuda.Out, dx, partial); err != nil {
			return err
		}
		f.value(cuda.Value(float32(epsilon)))
		if err := f.run(c, o.set, k, blocks); err != nil {
			return err
		}
		if err := f.pointers(cuda.In, partial); err != nil {
			return err
		}
		f.args = append(f.args, word(blocks), word(columns))
		if err := f.pointers(cuda.Out, dweight, dbias); err != nil {
			return err
		}
		k = k.NormSumsOf(sum.Type())
		return f.run(c, o.set, k, k.NormSumsBlocks())
	})
}

// sums reports whether a gradient of weights or biases is contiguous, of a type, and shares no memory with the rows. One that is
// nil is.
func (n *normOperands) sums(out, dx *tensor.Tensor, of tensor.Type) (bool, error) {
	if out == nil {
		return true, nil
	}
	if out.Type() != of || !floats(out) || !out.Layout().Contiguous() {
		return false, nil
	}
	for _, t := range [...]*tensor.Tensor{n.grad, n.x, n.weight, n.added, dx} {
		if shared, err := shareMemory(out, t); shared || err != nil {
			return false, err
		}
	}
	return true, nil
}

// dense reports whether the tensors of rows have one type and are contiguous, and all are aligned for vectors.
func (n *normOperands) dense(dx *tensor.Tensor, of tensor.Type) bool {
	for _, t := range [...]*tensor.Tensor{n.grad, n.x, n.added, dx, n.weight} {
		if t == nil {
			continue
		}
		if r, err := t.Range(); err != nil || startOf(r)%vectorBytes != 0 || !t.Layout().Contiguous() {
			return false
		}
		if t == n.weight {
			if !floats(t) {
				return false
			}
		} else if t.Type() != of || !sameShape(t, n.x) {
			return false
		}
	}
	return floats(n.x)
}

// floats reports whether a tensor is of a type that routines compute as float32.
func floats(t *tensor.Tensor) bool {
	of := t.Type()
	return routine.AdamWTypes([4]tensor.Type{of, of, of, of})
}

// pointers appends the addresses of contiguous tensors, or 0 for one that is nil.
func (f *routineFrame) pointers(of func(cuda.Buffer) cuda.Arg, all ...*tensor.Tensor) error {
	for _, t := range all {
		arg := cuda.Value(uint64(0))
		if t != nil {
			r, err := t.Range()
			if err != nil {
				return err
			}
			arg = of(r.Buffer).Of(r.Offset, r.Bytes)
		}
		f.value(arg)
	}
	return nil
}
