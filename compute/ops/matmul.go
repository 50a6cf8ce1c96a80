package ops

import (
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
}

// Matmul returns the product of the matrices in the last two dimensions of x and y, whose other dimensions are broadcast. An x
// of one dimension is a matrix of one row, a y of one dimension a matrix of one column, and the product lacks that dimension:
// of two vectors it is a scalar. A scalar is no operand. The types are one of float16, bfloat16, float32 and float64, after
// promotion. The matmul.Path says how it was computed. Errors: ErrShape, *tensor.TypeError.
func (o Products) Matmul(at tensor.Context, x, y *tensor.Tensor, how Product) (_ *tensor.Tensor, path matmul.Path, _ error) {
	shape, err := matmulShape(x.Shape(), y.Shape())
	out := sized(opMatmul, expr.Promote(x.Type(), y.Type()), shape, x, y)
	out.err = err
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
	path, err := o.multiplied(at, out, x, y, how)
	if err != nil {
		err = failed(opMatmul, err, []*tensor.Tensor{out}, x, y)
	}
	return path, err
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
	p := product{way: w, set: o.set, on: c, how: how, all: [3]*tensor.Tensor{out, x, y}}
	err = p.copying(1, func() error { return p.copying(2, func() error { return p.copying(0, p.multiply) }) })
	return p.path, err
}

// copying runs f with a copy of an operand, or of the output, in its place, if it needs one.
func (p *product) copying(i int, f func() error) error {
	if !p.copied[i] {
		return f()
	}
	return temporary(p.on, p.of, p.copies[i], func(packed *tensor.Tensor) error {
		given := p.all[i]
		p.all[i] = packed
		if i == 0 {
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
	problem.Precision = p.how.Precision
	var err error
	p.path, err = p.set.products.Multiply(p.on, problem, matmul.Operands{A: at[1], B: at[2], C: at[0], Alpha: 1}, p.how.Choice)
	return err
}
