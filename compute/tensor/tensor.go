package tensor

import (
	"fmt"

	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// Context is where tensors are made and work on them is submitted: a *cuda.Context, or a *Scope, in which
// tensors that are made belong to the scope. A struct that embeds a *Scope is one, too. ContextOf has the
// *cuda.Context.
type Context interface {
	// Stream is the stream to which the work goes.
	Stream() *cuda.Stream
	// Launch submits a kernel.
	Launch(f *cuda.Function, g cuda.Geometry, args ...cuda.Arg) error
}

// ContextOf returns the context of a scope, or the context itself. Errors: ErrNotOpen, ErrScopeEnded.
func ContextOf(at Context) (*cuda.Context, error) {
	c, _, err := contextOf(at)
	return c, err
}

func contextOf(at Context) (*cuda.Context, *Scope, error) {
	var c *cuda.Context
	var s *Scope
	switch at := at.(type) {
	case *cuda.Context:
		c = at
	case interface{ itself() *Scope }:
		if s = at.itself(); s == nil {
			return nil, nil, ErrNotOpen
		}
		if s.ended {
			return nil, nil, ErrScopeEnded
		}
		c = s.on
	}
	if c.Stream() == nil {
		return nil, nil, ErrNotOpen
	}
	return c, s, nil
}

// Tensor is a storage seen through a layout. Any number of goroutines may use it: see the package comment.
type Tensor struct {
	storage *storage
	owner   *Tensor // of the storage: the tensor itself, or nil where the storage is of a buffer of the caller
	layout  layout.Layout
	of      Type
	isView  bool // not the owner: copies of a Tensor tell, too
}

// New makes a tensor whose elements have no values yet. It allocates no memory: the first use does. Without a
// length it has one element. Errors: *ShapeError, *TypeError, ErrNotOpen, ErrScopeEnded.
func New(at Context, of Type, shape ...int) (*Tensor, error) {
	return made(at, "new", of, false, shape)
}

// Zeros is New of a tensor whose elements are 0: a fill is submitted with the first use.
func Zeros(at Context, of Type, shape ...int) (*Tensor, error) {
	return made(at, "zeros", of, true, shape)
}

// owned is a tensor with its storage, in one allocation.
type owned struct {
	tensor  Tensor
	storage storage
}

func made(at Context, op string, of Type, zeroed bool, shape []int) (*Tensor, error) {
	c, s, err := contextOf(at)
	if err != nil {
		return nil, err
	}
	if !of.Valid() {
		return nil, &TypeError{op, []Type{of}}
	}
	l, err := layout.Of(shape...)
	if err != nil {
		return nil, err
	}
	bytes, err := bytesOf(op, shape, l.Len(), of)
	if err != nil {
		return nil, err
	}
	o := &owned{}
	o.storage.on, o.storage.bytes, o.storage.zeroed = c, bytes, zeroed
	o.tensor = Tensor{storage: &o.storage, owner: &o.tensor, layout: l, of: of}
	if s != nil {
		o.storage.tag = s.tag
		s.add(&o.tensor)
	}
	return &o.tensor, nil
}

// Over returns a view of a buffer of the caller, which frees it: the elements are where the layout has them, from
// the begin of the buffer on. Errors: *TypeError, *LayoutError where the buffer is too short, ErrNotOpen,
// ErrScopeEnded, and ErrFreed for a buffer that is not live.
func Over(at Context, b cuda.Buffer, of Type, l layout.Layout) (*Tensor, error) {
	c, _, err := contextOf(at)
	if err != nil {
		return nil, err
	}
	if !of.Valid() {
		return nil, &TypeError{"over", []Type{of}}
	}
	if _, end := l.Bounds(); l.Len() > 0 && int64(end) > b.Bytes()/int64(of.Size()) {
		return nil, &LayoutError{Op: "over", Layout: l, Detail: fmt.Sprintf("the buffer has %d elements of %v", b.Bytes()/int64(of.Size()), of)}
	}
	if !b.Live() {
		return nil, fmt.Errorf("tensor: over %v: %w", b, ErrFreed)
	}
	s := &storage{on: c, bytes: b.Bytes()}
	s.memory.Store(&memory{b})
	return &Tensor{storage: s, layout: l, of: of, isView: true}, nil
}

// usable returns the error of a tensor that cannot be used.
func (t *Tensor) usable(op string) error {
	switch {
	case t == nil || t.storage == nil:
		return ErrNoTensor
	case t.storage.freed():
		return t.failed(op, ErrFreed)
	}
	return nil
}

// Type returns the type of the elements, and none for a nil tensor.
func (t *Tensor) Type() Type {
	if t == nil {
		return 0
	}
	return t.of
}

// Layout has shape, strides and offset.
func (t *Tensor) Layout() layout.Layout {
	if t == nil || t.storage == nil {
		return layout.Layout{}
	}
	return t.layout
}

// Has reports whether the tensor has a type and a layout: the layout is compared where it is, and not copied.
func (t *Tensor) Has(of Type, l *layout.Layout) bool {
	return t != nil && t.storage != nil && t.of == of && t.layout == *l
}

// Shape has the length of each dimension. The slice is the caller's.
func (t *Tensor) Shape() []int { return t.Layout().Shape() }

// Rank returns the number of dimensions.
func (t *Tensor) Rank() int { return t.Layout().Rank() }

// Dim returns the length of a dimension, and 0 for one that the tensor does not have. -1 is the last one.
func (t *Tensor) Dim(dim int) int { return t.Layout().Dim(dim) }

// Len returns the number of elements.
func (t *Tensor) Len() int {
	if t == nil || t.storage == nil {
		return 0
	}
	return t.layout.Len()
}

// Bytes returns the size of the elements. A view that repeats elements counts them each time.
func (t *Tensor) Bytes() int64 { return int64(t.Len()) * int64(t.Type().Size()) }

// Context is that in which the tensor was made. nil for a nil tensor.
func (t *Tensor) Context() *cuda.Context {
	if t == nil || t.storage == nil {
		return nil
	}
	return t.storage.on
}

// Owner returns the tensor that owns the storage: the tensor itself unless it is a view. It is nil for a view of a
// caller's buffer.
func (t *Tensor) Owner() *Tensor {
	if t == nil {
		return nil
	}
	return t.owner
}

// Live reports whether the tensor can be used: its storage was not freed.
func (t *Tensor) Live() bool { return t != nil && t.storage != nil && !t.storage.freed() }

// Allocate allocates the memory now, unless it has been allocated. Errors: ErrNoTensor, ErrFreed, and as cuda.Context.Alloc,
// such as vram.ErrOutOfMemory, after which the tensor is unchanged.
func (t *Tensor) Allocate() error {
	_, err := t.memory("allocate")
	return err
}

// memory returns the buffer of the storage.
func (t *Tensor) memory(op string) (cuda.Buffer, error) {
	if t == nil || t.storage == nil {
		return cuda.Buffer{}, ErrNoTensor
	}
	b, err := t.storage.buffer()
	if err != nil {
		return cuda.Buffer{}, t.failed(op, err)
	}
	return b, nil
}

// Buffer returns the memory of the storage, which the first use allocates: the element at place 0 of the layout is at its
// start. A tensor without elements may have the zero Buffer. Errors: as Allocate.
func (t *Tensor) Buffer() (cuda.Buffer, error) { return t.memory("buffer of") }

// Range returns the part of the buffer that contains all elements: from the lowest place of the layout to the highest. Errors:
// as Allocate.
func (t *Tensor) Range() (cuda.Range, error) {
	b, err := t.memory("range of")
	if err != nil {
		return cuda.Range{}, err
	}
	first, end := t.layout.Bounds()
	size := int64(t.of.Size())
	return cuda.Part(b, int64(first)*size, int64(end-first)*size), nil
}

// In returns the argument of a kernel that reads the tensor: the address of the lowest place of the layout, which is the first
// element unless a stride is negative. Errors: as Allocate.
func (t *Tensor) In() (cuda.Arg, error) { return t.arg(cuda.In) }

// Out is In of a kernel that writes the tensor.
func (t *Tensor) Out() (cuda.Arg, error) { return t.arg(cuda.Out) }

// InOut is In of a kernel that reads and writes the tensor.
func (t *Tensor) InOut() (cuda.Arg, error) { return t.arg(cuda.InOut) }

func (t *Tensor) arg(of func(cuda.Buffer) cuda.Arg) (cuda.Arg, error) {
	r, err := t.Range()
	if err != nil {
		return cuda.Arg{}, err
	}
	return of(r.Buffer).Of(r.Offset, r.Bytes), nil
}

// Free frees the storage, in the order of its stream: the memory is there for work that was submitted before.
// All views are freed with it. A tensor without memory is freed as well. Errors: ErrFreed after a free,
// ErrView, ErrNoTensor, vram.ErrClosed.
func (t *Tensor) Free() error {
	switch {
	case t == nil || t.storage == nil:
		return ErrNoTensor
	case t.owner != t:
		return t.failed("free", ErrView)
	}
	if err := t.storage.free(); err != nil {
		return t.failed("free", err)
	}
	return nil
}

// String has type, shape and device, and whether the tensor is a view, or freed. It makes no driver call.
// Fprint prints the values.
func (t *Tensor) String() string {
	if t == nil || t.storage == nil {
		return "no tensor"
	}
	text := fmt.Sprintf("%v%v on GPU %d", t.of, t.layout.Shape(), t.storage.on.Info().Ordinal)
	if t.isView {
		text += ", a view"
	}
	if t.storage.freed() {
		text += ", freed"
	}
	return text
}

// Format prints the text of String, for %v, %+v, %#v and %s, also of a Tensor that is no pointer: no verb prints the insides.
// fmt has <nil> for a nil pointer.
func (t Tensor) Format(f fmt.State, verb rune) {
	if verb == 'v' {
		verb = 's'
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), t.String()) // as fmt does: it returns the writer's error
}
