package tensor

import "github.com/go-vram/vram/compute/tensor/layout"

// Views share the storage: no element is copied, no memory allocated, no driver call made. Each method
// computes a layout as the method of layout.Layout of the same name does, with its errors, and ErrNoTensor or
// ErrFreed.

// view returns a tensor of the same storage.
func (t *Tensor) view(op string, to func(l layout.Layout) (layout.Layout, error)) (*Tensor, error) {
	if err := t.usable(op); err != nil {
		return nil, err
	}
	l, err := to(t.layout)
	if err != nil {
		return nil, err
	}
	return &Tensor{storage: t.storage, owner: t.owner, layout: l, of: t.of, isView: true}, nil
}

// Slice has the indices from one on, before another, of a dimension, step by step. A negative step goes down;
// to is then -1 at the lowest.
func (t *Tensor) Slice(dim, from, to, step int) (*Tensor, error) {
	return t.view("slice", func(l layout.Layout) (layout.Layout, error) { return l.Slice(dim, from, to, step) })
}

// Narrow has so many indices of a dimension from one on.
func (t *Tensor) Narrow(dim, from, length int) (*Tensor, error) {
	return t.view("narrow", func(l layout.Layout) (layout.Layout, error) { return l.Narrow(dim, from, length) })
}

// Index has one index of a dimension, which goes.
func (t *Tensor) Index(dim, at int) (*Tensor, error) {
	return t.view("index", func(l layout.Layout) (layout.Layout, error) { return l.Index(dim, at) })
}

// Permute orders the dimensions.
func (t *Tensor) Permute(dims ...int) (*Tensor, error) {
	return t.view("permute", func(l layout.Layout) (layout.Layout, error) { return l.Permute(dims...) })
}

// Transpose swaps two dimensions.
func (t *Tensor) Transpose(a, b int) (*Tensor, error) {
	return t.view("transpose", func(l layout.Layout) (layout.Layout, error) { return l.Transpose(a, b) })
}

// Reshape has the same elements in row-major order with another shape, of which one length may be -1: it is
// computed. A *LayoutError says that no strides do it: Contiguous copies.
func (t *Tensor) Reshape(shape ...int) (*Tensor, error) {
	return t.view("reshape", func(l layout.Layout) (layout.Layout, error) { return l.Reshape(shape...) })
}

// Flatten makes one dimension of those from the first to the last one.
func (t *Tensor) Flatten(first, last int) (*Tensor, error) {
	return t.view("flatten", func(l layout.Layout) (layout.Layout, error) { return l.Flatten(first, last) })
}

// Broadcast repeats the elements along dimensions of length 1, and along new ones at the front.
func (t *Tensor) Broadcast(shape ...int) (*Tensor, error) {
	return t.view("broadcast", func(l layout.Layout) (layout.Layout, error) { return l.Broadcast(shape...) })
}

// Squeeze removes dimensions of length 1: those that are named, or all of them if none is.
func (t *Tensor) Squeeze(dims ...int) (*Tensor, error) {
	return t.view("squeeze", func(l layout.Layout) (layout.Layout, error) { return l.Squeeze(dims...) })
}

// Unsqueeze puts a dimension of length 1 before another one, or at the end: -1 is there.
func (t *Tensor) Unsqueeze(dim int) (*Tensor, error) {
	return t.view("unsqueeze", func(l layout.Layout) (layout.Layout, error) { return l.Unsqueeze(dim) })
}
