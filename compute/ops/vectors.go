package ops

import (
	"slices"

	"github.com/go-vram/vram/compute/tensor"
)

// vectors views the operands of a product that have one dimension as matrices: x as one of one row, y as one of one column, and
// their product with the dimensions that it lacks then.
type vectors struct {
	x, y  bool            // that have one dimension
	slots [6]*tensor.Slot // of x, y, both gradients, and two of the product
	count int
	err   error // the first one: ErrShape, or one of a view
}

func vectorsOf(x, y *tensor.Tensor) vectors { return vectors{x: x.Rank() == 1, y: y.Rank() == 1} }

func (v *vectors) present() bool { return v.x || v.y }

// row is x, or its gradient, as a matrix. It lives until release.
func (v *vectors) row(t *tensor.Tensor) *tensor.Tensor { return v.matrix(t, v.x, 0) }

// column is y, or its gradient, as a matrix.
func (v *vectors) column(t *tensor.Tensor) *tensor.Tensor { return v.matrix(t, v.y, -1) }

// product is the product, or its gradient, with a dimension for each that it lacks.
func (v *vectors) product(t *tensor.Tensor) *tensor.Tensor {
	return v.matrix(v.matrix(t, v.y, -1), v.x, -2)
}

func (v *vectors) matrix(t *tensor.Tensor, lacking bool, dim int) *tensor.Tensor {
	if t == nil || !lacking || v.err != nil {
		return t
	}
	if t.Rank()+1 < -dim {
		v.err = ErrShape
		return t
	}
	l, err := t.Layout().Unsqueeze(dim)
	if err == nil {
		slot := takeSlot()
		v.slots[v.count] = slot
		v.count++
		t, err = slot.View(t, l)
	}
	v.err = err
	return t
}

func (v *vectors) release() {
	for _, s := range v.slots[:v.count] {
		releaseSlot(s)
	}
}

// matmulShape returns the shape of the product of x and y, which may be vectors. Errors: ErrShape, *tensor.ShapeError.
func matmulShape(x, y []int) ([]int, error) {
	rows, columns := x, y
	if len(x) == 1 {
		rows = []int{1, x[0]}
	}
	if len(y) == 1 {
		columns = []int{y[0], 1}
	}
	shape, err := productShape(rows, columns)
	if err != nil {
		return nil, err
	}
	last := len(shape)
	if len(y) == 1 {
		shape = shape[:last-1]
	}
	if len(x) == 1 {
		shape = slices.Delete(shape, last-2, last-1)
	}
	return shape, nil
}
