package tensor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// The errors of layouts: see package compute/tensor/layout.
type (
	// ShapeError refuses shapes that an operation cannot have, or cannot have together.
	ShapeError = layout.ShapeError
	// IndexError refuses an index, or a range of indices, that a dimension does not have.
	IndexError = layout.IndexError
	// LayoutError refuses a layout: no strides make the wanted view of it, or an operation cannot have it.
	LayoutError = layout.LayoutError
)

var (
	// ErrNoTensor refuses a nil or zero Tensor.
	ErrNoTensor = errors.New("tensor: no tensor")
	// ErrFreed refuses a tensor whose storage was freed.
	ErrFreed = errors.New("the storage was freed")
	// ErrView refuses to free a view: the owner of its storage does that.
	ErrView = errors.New("a view does not own its storage")
	// ErrScopeEnded refuses to make tensors in a scope that has ended.
	ErrScopeEnded = errors.New("tensor: the scope has ended")
	// ErrNotOpen refuses a nil context or scope, and a Context that is neither a *cuda.Context nor a *Scope.
	ErrNotOpen = cuda.ErrNotOpen
	// ErrTooLarge refuses a shape of which the elements, or their bytes, are more than can be counted.
	ErrTooLarge = layout.ErrTooLarge
	// ErrRank refuses more dimensions than layout.MaxRank.
	ErrRank = layout.ErrRank
	// ErrScalar refuses a tensor of several elements where one is wanted.
	ErrScalar = errors.New("the tensor does not have exactly one element")
)

// TypeError refuses element types that an operation cannot have, or cannot have together.
type TypeError struct {
	Op    string
	Types []Type
}

// Error names the operation and the types.
func (e *TypeError) Error() string {
	names := make([]string, len(e.Types))
	for i, t := range e.Types {
		names[i] = t.String()
	}
	return fmt.Sprintf("tensor: %s %s: not possible for these element types", e.Op, strings.Join(names, " and "))
}

// LengthError refuses a slice that has not as many elements as a tensor.
type LengthError struct {
	Op      string
	Shape   []int
	Len     int // of the tensor
	HostLen int // of the slice
}

// Error names the shape and both lengths.
func (e *LengthError) Error() string {
	return fmt.Sprintf("tensor: %s: a slice of length %d and shape %v, which has %d elements", e.Op, e.HostLen, e.Shape, e.Len)
}

// LeakError reports tensors of a scope that are not freed.
type LeakError struct{ Live []Made }

// Error names all of them.
func (e *LeakError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tensor: %d not freed", len(e.Live))
	for _, m := range e.Live {
		b.WriteString("\n\t" + m.String())
	}
	return b.String()
}

// failed adds the operation and the tensor to an error.
func (t *Tensor) failed(op string, err error) error {
	return fmt.Errorf("tensor: %s %v: %w", op, t, err)
}
