package ops

import (
	"fmt"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

type productGradients struct{ set *set }

// MatmulBackward returns the gradients of the operands of Matmul: the products grad*yᵀ and xᵀ*grad, summed over the batches
// along which an operand was broadcast. It takes vectors and how as Matmul does, and returns the paths of dx and dy. Errors:
// ErrShape, *tensor.TypeError.
func (o productGradients) MatmulBackward(
	at tensor.Context, grad, x, y *tensor.Tensor, how Product,
) (dx, dy *tensor.Tensor, paths [2]matmul.Path, err error) {
	dx, dy, err = both(at, opMatmulBackward, x, y, func(dx, dy *tensor.Tensor) (err error) {
		paths, err = o.MatmulBackwardInto(at, dx, dy, grad, x, y, how)
		return err
	})
	return dx, dy, paths, err
}

// MatmulBackwardInto writes MatmulBackward to tensors. dx may lie over x, or dy over y, but not both, and neither over another
// operand: that is kernel.ErrOverlap. The gradient of an operand that is a view, as a transposed one, has the shape of the
// view.
//
// The gradient of a matrix that is multiplied with each one of a batch is one product of all of these, one below the other.
// Those that do not lie so are copied to temporary memory, unless that takes more of it than a product for each of them. Then,
// and where an operand is broadcast along a part of the batch, temporary memory has a product for each matrix, and another
// launch adds these: as float32 for types of 16 bits.
func (o productGradients) MatmulBackwardInto(at tensor.Context, dx, dy, grad, x, y *tensor.Tensor, how Product) (paths [2]matmul.Path, err error) {
	err = o.gradients(at, [2]*tensor.Tensor{dx, dy}, grad, x, y, how, &paths)
	if err == nil {
		return paths, nil
	}
	err = named(opMatmulBackward, err, given(dx, dy), grad, x, y)
	return paths, renamed(opMatmulBackward, err)
}

func (o productGradients) gradients(at tensor.Context, out [2]*tensor.Tensor, grad, x, y *tensor.Tensor, how Product, paths *[2]matmul.Path) error {
	if o.set == nil {
		return ErrNotOpen
	}
	if !grad.Type().Valid() || !x.Type().Valid() || !y.Type().Valid() {
		return tensor.ErrNoTensor
	}
	if !how.plain() || how.Aux != nil {
		return fmt.Errorf("gradients of products have no epilogue: %w", ErrShape)
	}
	if v := vectorsOf(x, y); v.present() {
		defer v.release()
		out[0], out[1] = v.row(out[0]), v.column(out[1])
		if grad, x, y = v.product(grad), v.row(x), v.column(y); v.err != nil {
			return v.err
		}
	}
	if !fitsProduct(grad.Layout(), x.Layout(), y.Layout()) {
		return ErrShape
	}
	operands := [...][2]*tensor.Tensor{{grad, y}, {x, grad}}
	var steps [2]step
	for i, of := range [...]*tensor.Tensor{x, y} {
		if out[i] == nil {
			continue
		}
		if !out[i].Type().Valid() {
			return tensor.ErrNoTensor
		}
		if !sameShape(out[i], of) {
			return ErrShape
		}
		for _, t := range operands[i] {
			if err := apart(out[i], t); err != nil {
				return err
			}
		}
		steps[i] = step{out[i], [4]*tensor.Tensor{operands[i][0], operands[i][1]}}
	}
	all, err := ordered(steps[:]...)
	if err != nil {
		return err
	}
	for _, i := range all.steps[:all.count] {
		a, b := operands[i][0], operands[i][1]
		p := batchedProduct{o.set, at, expr.Promote(a.Type(), b.Type()), grad.Layout(), how, matmul.Path{}}
		if i == 0 {
			err = transposed(b, func(b *tensor.Tensor) error { return p.summedProduct(out[0], a, b) })
		} else {
			err = transposed(a, func(a *tensor.Tensor) error { return p.summedProduct(out[1], a, b) })
		}
		paths[i] = p.path
		if err != nil {
			return err
		}
	}
	return nil
}

// fitsProduct reports whether a layout has the shape of the product of others.
func fitsProduct(out, x, y layout.Layout) bool {
	if x.Rank() < 2 || y.Rank() < 2 || out.Rank() != max(x.Rank(), y.Rank()) {
		return false
	}
	if x.Dim(-1) != y.Dim(-2) || out.Dim(-2) != x.Dim(-2) || out.Dim(-1) != y.Dim(-1) {
		return false
	}
	for d := 3; d <= out.Rank(); d++ {
		a, b := 1, 1
		if d <= x.Rank() {
			a = x.Dim(-d)
		}
		if d <= y.Rank() {
			b = y.Dim(-d)
		}
		if a == 1 {
			a = b
		}
		if out.Dim(-d) != a || b != 1 && b != a {
			return false
		}
	}
	return true
}

// transposed gives f the matrices of a tensor, transposed.
func transposed(t *tensor.Tensor, f func(*tensor.Tensor) error) error {
	l, err := t.Layout().Transpose(-2, -1)
	if err != nil {
		return err
	}
	return viewed(t, l, f)
}

// batchedProduct is a product whose result is summed over the batches along which the output is broadcast.
type batchedProduct struct {
	set   *set
	at    tensor.Context
	of    tensor.Type   // of the operands
	batch layout.Layout // its last two dimensions do not count
	how   Product
	path  matmul.Path
}

func (p *batchedProduct) multiply(out, a, b *tensor.Tensor) (err error) {
	p.path, err = Products{p.set}.product(p.at, out, a, b, p.how)
	return err
}

// summedProduct computes the output.
func (p *batchedProduct) summedProduct(out, a, b *tensor.Tensor) error {
	if out.Len() == 0 {
		p.path.Parts = 1
		return nil
	}
	each, err := p.matrices(a.Dim(-2), b.Dim(-1))
	if err != nil {
		return err
	}
	along, to, err := broadcastAxes(out.Layout(), each)
	if err != nil {
		return err
	}
	if along == 0 {
		return viewed(out, to, func(out *tensor.Tensor) error { return p.multiply(out, a, b) })
	}
	if matrix := a.Dim(-2) * b.Dim(-1); out.Len() == matrix && a.Len() > 0 && b.Len() > 0 && each.Len() > 0 {
		return transposed(a, func(a *tensor.Tensor) error { return p.stacked(out, a, b, each) })
	}
	return p.added(out, a, b, each)
}

// added computes the output as the sum of a product for each matrix.
func (p *batchedProduct) added(out, a, b *tensor.Tensor, each layout.Layout) error {
	return temporary(p.at, accumulator(p.of), each, func(each *tensor.Tensor) error {
		if err := p.multiply(each, a, b); err != nil {
			return err
		}
		return p.set.summedInto(p.at, key{op: opSum}, out, each)
	})
}

// stacked computes the output, which is one matrix, of b and of a with transposed matrices: as one product of all matrices one
// below the other, or as added does where copies of those that lie apart would take more memory.
func (p *batchedProduct) stacked(out, a, b *tensor.Tensor, each layout.Layout) error {
	left, err := p.stack(a.Layout())
	if err != nil {
		return err
	}
	right, err := p.stack(b.Layout())
	if err != nil {
		return err
	}
	if left.copied()+right.copied() > each.Len() {
		return transposed(a, func(a *tensor.Tensor) error { return p.added(out, a, b, each) })
	}
	one := out.Layout()
	for one.Rank() > 2 {
		if one, err = one.Squeeze(0); err != nil {
			return err
		}
	}
	return viewed(out, one, func(out *tensor.Tensor) error {
		return p.below(a, &left, func(a *tensor.Tensor) error {
			return transposed(a, func(a *tensor.Tensor) error {
				return p.below(b, &right, func(b *tensor.Tensor) error { return p.multiply(out, a, b) })
			})
		})
	})
}

// matrices returns the contiguous layout of a matrix of a shape for each one of the batch.
func (p *batchedProduct) matrices(rows, columns int) (layout.Layout, error) {
	var lengths [layout.MaxRank]int
	shape := p.batch.AppendShape(lengths[:0])
	shape[len(shape)-2], shape[len(shape)-1] = rows, columns
	return layout.Of(shape...)
}

// stack is how the matrices of a tensor for a batch are one matrix, one below the other.
type stack struct {
	packed layout.Layout // contiguous
	whole  layout.Layout // as they lie
	lies   bool          // that is one matrix
}

// copied returns the number of elements of a copy that it takes.
func (s *stack) copied() int {
	if s.lies {
		return 0
	}
	return s.packed.Len()
}

func (p *batchedProduct) stack(l layout.Layout) (s stack, err error) {
	if s.packed, err = p.matrices(l.Dim(-2), l.Dim(-1)); err != nil {
		return s, err
	}
	var lengths [layout.MaxRank]int
	if s.whole, err = l.Broadcast(s.packed.AppendShape(lengths[:0])...); err != nil {
		return s, err
	}
	next, first := 0, true
	for d := s.whole.Rank() - 2; d >= 0; d-- {
		n, stride := s.whole.Dim(d), s.whole.Stride(d)
		if n == 1 {
			continue
		}
		if !first && stride != next {
			return s, nil
		}
		next, first = stride*n, false
	}
	s.lies = true
	return s, nil
}

// below gives f the matrices of a tensor as one matrix, one below the other: as they lie, or a copy.
func (p *batchedProduct) below(t *tensor.Tensor, s *stack, f func(*tensor.Tensor) error) error {
	if s.lies {
		one, err := s.whole.Flatten(0, -2)
		if err != nil {
			return err
		}
		return viewed(t, one, f)
	}
	one, err := s.packed.Flatten(0, -2)
	if err != nil {
		return err
	}
	return temporary(p.at, p.of, s.packed, func(packed *tensor.Tensor) error {
		if err := (Makers{p.set}).CopyInto(p.at, packed, t); err != nil {
			return err
		}
		return viewed(packed, one, f)
	})
}
