package ops

import (
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// Rows are operations on rows of elements: softmax along an axis, and norms and losses along the last ones.
type Rows struct{ set *set }

// Softmax is exp(x)/sum(exp(x)) along an axis, without overflow. Errors: ErrAxes.
func (o Rows) Softmax(at tensor.Context, x *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	return o.set.along(at, opSoftmax, x, axis)
}

// SoftmaxInto writes Softmax to a tensor.
func (o Rows) SoftmaxInto(at tensor.Context, out, x *tensor.Tensor, axis int) error {
	return o.set.alongInto(at, opSoftmax, axis, out, x)
}

// LogSoftmax returns the logarithm of Softmax.
func (o Rows) LogSoftmax(at tensor.Context, x *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	return o.set.along(at, opLogSoftmax, x, axis)
}

// LogSoftmaxInto writes LogSoftmax to a tensor.
func (o Rows) LogSoftmaxInto(at tensor.Context, out, x *tensor.Tensor, axis int) error {
	return o.set.alongInto(at, opLogSoftmax, axis, out, x)
}

func (s *set) along(at tensor.Context, op operation, x *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	along, err := axesOf(x.Rank(), axis)
	if err != nil {
		return nil, failed(op, err, nil, x)
	}
	return s.made(at, key{op: op, axes: along}, x.Shape(), x)
}

func (s *set) alongInto(at tensor.Context, op operation, axis int, out *tensor.Tensor, inputs ...*tensor.Tensor) error {
	along, err := axesOf(out.Rank(), axis)
	if err != nil {
		return failed(op, err, []*tensor.Tensor{out}, inputs...)
	}
	return s.into(at, key{op: op, axes: along}, out, inputs...)
}

// LayerNorm is (x-mean)/sqrt(variance+epsilon) of the last dims dimensions, times a weight, plus a bias, of the shape of these
// dimensions: nil for none. Of equal elements mean and variance are exact, however large they are. Where the variance is
// infinite, the norm is 0; with an infinite element or NaN the whole row is NaN. Errors: ErrAxes, ErrShape.
func (o Rows) LayerNorm(at tensor.Context, x, weight, bias *tensor.Tensor, dims int, epsilon float64) (*tensor.Tensor, error) {
	return create(at, normed(opLayerNorm, x, weight, bias), func(out *tensor.Tensor) error { return o.LayerNormInto(at, out, x, weight, bias, dims, epsilon) })
}

// LayerNormInto writes LayerNorm to a tensor.
func (o Rows) LayerNormInto(at tensor.Context, out, x, weight, bias *tensor.Tensor, dims int, epsilon float64) error {
	return o.normInto(at, opLayerNorm, out, x, weight, bias, dims, epsilon)
}

// RMSNorm is x/sqrt(mean(x²)+epsilon) of the last dims dimensions, times a weight of the shape of these dimensions: nil for
// none. Where the sum of the squares is infinite, as with an infinite element, numbers become 0, and infinite elements NaN.
// Errors: ErrAxes, ErrShape.
func (o Rows) RMSNorm(at tensor.Context, x, weight *tensor.Tensor, dims int, epsilon float64) (*tensor.Tensor, error) {
	return create(at, normed(opRMSNorm, x, weight, nil), func(out *tensor.Tensor) error { return o.RMSNormInto(at, out, x, weight, dims, epsilon) })
}

// RMSNormInto writes RMSNorm to a tensor.
func (o Rows) RMSNormInto(at tensor.Context, out, x, weight *tensor.Tensor, dims int, epsilon float64) error {
	return o.normInto(at, opRMSNorm, out, x, weight, nil, dims, epsilon)
}

// normed describes the result of a norm: of the type of x, or float32 for integers.
func normed(op operation, x, weight, bias *tensor.Tensor) output {
	of := x.Type()
	if of.Valid() && of.Kind() != tensor.Floating {
		of = tensor.Float32
	}
	return sized(op, of, x.Shape(), x, weight, bias)
}

func (o Rows) normInto(at tensor.Context, op operation, out, x, weight, bias *tensor.Tensor, dims int, epsilon float64) error {
	along, err := lastAxes(out.Rank(), dims)
	if err == nil {
		err = fitsLast(out, dims, weight, bias)
	}
	if err != nil {
		return failed(op, err, []*tensor.Tensor{out}, given(x, weight, bias)...)
	}
	k := key{op: op, axes: along, numbers: [4]uint64{math.Float64bits(epsilon)}}
	all := [3]*tensor.Tensor{x}
	n := 1
	n += k.affine(all[n:], weight, bias)
	return o.set.into(at, k, out, all[:n]...)
}

// affine notes which of weight and bias a norm has, writes them after the operands, and returns how many it wrote.
func (k *key) affine(to []*tensor.Tensor, weight, bias *tensor.Tensor) (n int) {
	if weight != nil {
		k.with |= withWeight
		to[n] = weight
		n++
	}
	if bias != nil {
		k.with |= withBias
		to[n] = bias
		n++
	}
	return n
}

// fitsLast returns ErrShape where a weight, a bias or the gradient of one has not the last dims dimensions of x. Those that are
// nil fit.
func fitsLast(x *tensor.Tensor, dims int, all ...*tensor.Tensor) error {
	for _, t := range all {
		if t == nil {
			continue
		}
		if t.Rank() != dims {
			return ErrShape
		}
		for d := 1; d <= dims; d++ {
			if t.Dim(-d) != x.Dim(-d) {
				return ErrShape
			}
		}
	}
	return nil
}

// lastAxes returns the last dims axes. Errors: ErrAxes.
func lastAxes(rank, dims int) (axes, error) {
	if dims < 1 || dims > rank {
		return 0, fmt.Errorf("the last %d of %d dimensions: %w", dims, rank, ErrAxes)
	}
	return 1<<dims - 1, nil
}

// LossOption changes a loss.
type LossOption struct{ ignored int64 }

// Ignored has rows of a class not count: their loss and their gradient are 0, whether there is such a class or not, also where
// logits are NaN or infinite. The mean of the others is the sum of the losses divided by the number of targets that differ from
// the class. Each class compiles a kernel.
func Ignored(class int64) LossOption { return LossOption{class} }

// lossKey returns the key of a loss.
func lossKey(op operation, options []LossOption) key {
	k := key{op: op, axes: 1}
	for _, o := range options {
		k.with, k.numbers[0] = withIgnored, uint64(o.ignored) //nolint:gosec // the same bits
	}
	return k
}

// CrossEntropy returns the loss of each row of logits, along the last dimension, for the class that targets has for it, of
// int64: the negative logarithm of the softmax at that class. A class that there is not has NaN. Mean makes one loss of them.
// It has the type float32. Of several options the last one counts.
func (o Rows) CrossEntropy(at tensor.Context, logits, targets *tensor.Tensor, options ...LossOption) (*tensor.Tensor, error) {
	return create(at, sized(opCrossEntropy, tensor.Float32, targets.Shape(), logits, targets), func(out *tensor.Tensor) error { return o.CrossEntropyInto(at, out, logits, targets, options...) })
}

// CrossEntropyInto writes CrossEntropy to a tensor. It makes two launches: one writes the numbers of the classes into temporary
// memory.
func (o Rows) CrossEntropyInto(at tensor.Context, out, logits, targets *tensor.Tensor, options ...LossOption) error {
	return o.set.classes(at, lossKey(opCrossEntropy, options), out, targets, logits)
}

// classes runs an operation on rows whose last operands are the class of each row and the numbers of all classes. The operands
// before these end with the logits.
func (s *set) classes(at tensor.Context, k key, out, targets *tensor.Tensor, inputs ...*tensor.Tensor) error {
	var operands [maxInputs]*tensor.Tensor
	n := copy(operands[:], inputs)
	logits := operands[n-1]
	operands[n] = targets
	column, err := columnOf(k.op, logits, targets)
	if err == nil {
		err = viewed(targets, column, func(column *tensor.Tensor) error {
			numbers, err := layout.Of(logits.Dim(-1))
			if err != nil {
				return err
			}
			return temporary(at, tensor.Int64, numbers, func(numbers *tensor.Tensor) error {
				if err := (Makers{s}).ArangeInto(at, numbers, 0, 1); err != nil {
					return err
				}
				all := operands
				all[n], all[n+1] = column, numbers
				return s.into(at, k, out, all[:n+2]...)
			})
		})
	}
	return renamed(k.op, named(k.op, err, []*tensor.Tensor{out}, operands[:n+1]...))
}

// columnOf returns the layout of targets as a column next to logits. Errors: ErrShape, *tensor.TypeError.
func columnOf(op operation, logits, targets *tensor.Tensor) (layout.Layout, error) {
	if targets.Type() != tensor.Int64 {
		return layout.Layout{}, &tensor.TypeError{Op: "targets of " + op.String(), Types: []tensor.Type{targets.Type()}}
	}
	if logits.Rank() == 0 || targets.Rank() != logits.Rank()-1 {
		return layout.Layout{}, ErrShape
	}
	for d := range targets.Rank() {
		if targets.Dim(d) != logits.Dim(d) {
			return layout.Layout{}, ErrShape
		}
	}
	return targets.Layout().Unsqueeze(-1)
}
