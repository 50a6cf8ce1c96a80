package ops

import (
	"fmt"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// Products are products of matrices.
type Products struct{ set *set }

// Product says how a product is computed. The zero value is exact fp32, by the library where it is there.
type Product struct {
	Precision gemm.Precision // of float32: other types have gemm.IEEE alone
	Choice    matmul.Choice  // which way it may take

	// The product's kernel does this before it stores an element, which saves a launch that reads and writes all of them:
	// out + x·y + Bias, if Add, and then the Epilogue. Matrices alone have that. Bias and Aux have the type of the output.
	Add      bool           // the output is added to, as a residual; MatmulInto alone
	Bias     *tensor.Tensor // of one dimension: a number for each column; nil for none
	Epilogue gemm.Epilogue
	Aux      *tensor.Tensor // contiguous, of the output's shape: the operand of GELU, which GELUAux writes and GELUGradient reads
}

// plain reports whether the product is stored as it is.
func (p *Product) plain() bool { return !p.Add && p.Bias == nil && p.Epilogue == gemm.None }

// Matmul returns the product of the matrices in the last two dimensions of x and y, whose other dimensions are broadcast. An x
// of one dimension is a matrix of one row, a y of one dimension a matrix of one column, and the product lacks that dimension:
// of two vectors it is a scalar. A scalar is no operand. The types are one of float16, bfloat16, float32 and float64, after
// promotion. The matmul.Path says how it was computed. Errors: ErrShape, *tensor.TypeError.
func (o Products) Matmul(at tensor.Context, x, y *tensor.Tensor, how Product) (_ *tensor.Tensor, path matmul.Path, _ error) {
	shape, err := matmulShape(x.Shape(), y.Shape())
	out := sized(opMatmul, expr.Promote(x.Type(), y.Type()), shape, x, y)
	if out.err = err; err == nil && how.Add {
		out.err = fmt.Errorf("a new tensor has nothing to add to: %w", ErrShape)
	}
	made, err := create(at, out, func(out *tensor.Tensor) (err error) {
		path, err = o.MatmulInto(at, out, x, y, how)
		return err
	})
	return made, path, err
}

// MatmulInto writes Matmul to a tensor, which must not overlap the operands: that is kernel.ErrOverlap. Transposed matrices are
// multiplied as they are; operands whose elements lie apart, or that are of another type than the output, are copied to
// temporary memory first, and so is an output of such a layout.
func (o Products) MatmulInto(at tensor.Context, out, x, y *tensor.Tensor, how Product) (matmul.Path, error) {
	err := how.fits(out, x, y)
	var path matmul.Path
	if err == nil {
		path, err = o.multiplied(at, out, x, y, how)
	}
	if err != nil {
		err = failed(opMatmul, err, []*tensor.Tensor{out}, x, y)
	}
	return path, err
}

// fits refuses operands of an epilogue. Errors: ErrShape, *tensor.TypeError, tensor.ErrNoTensor,
// kernel.ErrOverlap.
func (p *Product) fits(out, x, y *tensor.Tensor) error {
	if p.plain() && p.Aux == nil {
		return nil
	}
	if x.Rank() < 2 || y.Rank() < 2 {
		return fmt.Errorf("vectors have no epilogue: %w", ErrShape)
	}
	if (p.Aux != nil) != (p.Epilogue.ReadsAux() || p.Epilogue.WritesAux()) {
		return fmt.Errorf("an epilogue %v and the other operand: %w", p.Epilogue, ErrShape)
	}
	for _, t := range [...]*tensor.Tensor{p.Bias, p.Aux} {
		switch {
		case t == nil:
			continue
		case !t.Type().Valid():
			return tensor.ErrNoTensor
		case t.Type() != out.Type():
			return &tensor.TypeError{Op: "epilogue of " + opMatmul.String(), Types: []tensor.Type{t.Type(), out.Type()}}
		case !t.Layout().Contiguous(), t == p.Bias && (t.Rank() != 1 || t.Len() != out.Dim(-1)), t == p.Aux && !sameShape(t, out):
			return ErrShape
		}
		if err := apart(out, t); err != nil {
			return err
		}
	}
	if p.Epilogue.WritesAux() {
		for _, t := range [...]*tensor.Tensor{x, y, p.Bias} {
			if err := apart(p.Aux, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// multiplied computes a product of matrices or vectors.
func (o Products) multiplied(at tensor.Context, out, x, y *tensor.Tensor, how Product) (matmul.Path, error) {
	v := vectorsOf(x, y)
	if !v.present() {
		return o.product(at, out, x, y, how)
	}
	defer v.release()
	if out, x, y = v.product(out), v.row(x), v.column(y); v.err != nil {
		return matmul.Path{}, v.err
	}
	return o.product(at, out, x, y, how)
}

// product is a product that is computed.
type product struct {
	*way

	set  *set
	in   tensor.Context // of temporary memory, which has the tag of a scope
	on   *cuda.Context
	how  Product
	all  [3]*tensor.Tensor // output and operands, or the copies of them
	path matmul.Path
}

func (o Products) product(at tensor.Context, out, x, y *tensor.Tensor, how Product) (matmul.Path, error) {
	if o.set == nil {
		return matmul.Path{}, ErrNotOpen
	}
	c, err := tensor.ContextOf(at)
	if err != nil {
		return matmul.Path{}, err
	}
	if !out.Type().Valid() || !x.Type().Valid() || !y.Type().Valid() {
		return matmul.Path{}, tensor.ErrNoTensor
	}
	w, err := o.set.way(out, x, y)
	if err != nil {
		return matmul.Path{}, err
	}
	if w.copied != [3]bool{} { // the product sees copies
		for _, t := range [...]*tensor.Tensor{x, y} {
			if err := apart(t, out); err != nil {
				return matmul.Path{}, err
			}
		}
	}
	p := product{way: w, set: o.set, in: at, on: c, how: how, all: [3]*tensor.Tensor{out, x, y}}
	err = p.copying(1, func() error { return p.copying(2, func() error { return p.copying(0, p.multiply) }) })
	return p.path, err
}

// copying runs f with a copy of an operand, or of the output, in its place, if it needs one.
func (p *product) copying(i int, f func() error) error {
	if !p.copied[i] {
		return f()
	}
	return temporary(p.in, p.of, p.copies[i], func(packed *tensor.Tensor) error {
		given := p.all[i]
		p.all[i] = packed
		if i == 0 {
			if p.how.Add {
				if err := (Makers{p.set}).CopyInto(p.on, packed, given); err != nil {
					return err
				}
			}
			if err := f(); err != nil {
				return err
			}
			return Makers{p.set}.CopyInto(p.on, given, packed)
		}
		if err := (Makers{p.set}).CopyInto(p.on, packed, given); err != nil {
			return err
		}
		return f()
	})
}

// multiply submits the product.
func (p *product) multiply() error {
	if p.all[0].Len() == 0 {
		p.path.Parts = 1
		return nil
	}
	var at [3]cuda.Range
	for _, i := range [...]int{1, 2, 0} {
		var err error
		if at[i], err = p.all[i].Range(); err != nil {
			return err
		}
	}
	problem := p.problem
	problem.Precision, problem.Bias, problem.Epilogue = p.how.Precision, p.how.Bias != nil, p.how.Epilogue
	operands := matmul.Operands{A: at[1], B: at[2], C: at[0], Alpha: 1}
	if p.how.Add {
		operands.Beta = 1
	}
	var err error
	if operands.Bias, err = p.more(p.how.Bias); err != nil {
		return err
	}
	if operands.Aux, err = p.more(p.how.Aux); err != nil {
		return err
	}
	p.path, err = p.set.products.Multiply(p.on, problem, operands, p.how.Choice)
	return err
}

// more returns the memory of a bias, or of the other operand of an epilogue: none for one that is nil.
func (p *product) more(t *tensor.Tensor) (at cuda.Range, err error) {
	if t == nil {
		return at, nil
	}
	if of, known := gemmType(t.Type()); !known || of != p.problem.Out {
		return at, &tensor.TypeError{Op: "epilogue of " + opMatmul.String(), Types: []tensor.Type{t.Type(), p.of}}
	}
	return t.Range()
}
