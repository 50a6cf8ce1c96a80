package gorgonia

import (
	"cmp"
	"errors"
	"slices"

	gorgonia "gorgonia.org/tensor"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// Engine executes operations of gorgonia.org/tensor on a device. It is an Engine and a NonStdEngine of that package, and has the
// optional interfaces that the package comment lists. New returns one. One goroutine at a time uses it.
type Engine struct {
	context *cuda.Context
	ops     ops.Ops
	scopes  []*tensor.Scope // the innermost last; only the ended outermost one after Close
	blocks  blocks
	failed  error // of Memclr, which cannot return it
}

// New returns an engine that allocates and computes on the stream of a context, or in a scope, whose end then ends all memory of
// the engine. The caller closes it, and keeps the operations open until then. Errors: tensor.ErrNotOpen, tensor.ErrScopeEnded.
func New(at tensor.Context, o ops.Ops) (*Engine, error) {
	c, err := tensor.ContextOf(at)
	s, other := tensor.NewScope(at)
	if err = cmp.Or(err, other); err != nil {
		return nil, failed("New", err)
	}
	return &Engine{context: c, ops: o, scopes: []*tensor.Scope{s}, blocks: nil, failed: nil}, nil
}

// Close frees all memory of the engine, in the order of its stream: it does not wait. Idempotent. It joins the errors of the
// frees, none of which leaves memory allocated, and an error of Memclr.
func (e *Engine) Close() error {
	var err error
	for _, s := range slices.Backward(e.scopes) {
		err = errors.Join(err, s.Close())
	}
	e.scopes, e.blocks = e.scopes[:min(len(e.scopes), 1)], nil
	return failed("Close", errors.Join(err, e.cleared()))
}

// Scoped runs f, and frees the memory that was allocated in it when f returns or panics, unless Keep was called for it. It
// joins the errors of f, of the frees, and of Memclr. Errors: tensor.ErrScopeEnded after Close.
func (e *Engine) Scoped(f func() error) (err error) {
	s, err := tensor.NewScope(e.scope())
	if err != nil {
		return failed("Scoped", err)
	}
	e.scopes = append(e.scopes, s)
	depth := len(e.scopes)
	defer func() {
		if len(e.scopes) >= depth { // not closed by f
			e.scopes = e.scopes[:depth-1]
		}
		ended := s.Close()
		e.blocks.sweep()
		err = errors.Join(err, failed("Scoped", errors.Join(ended, e.cleared())))
	}()
	return f()
}

// Keep moves the memory of tensors from the innermost scope to the one around it. In the outermost scope memory lives until
// Close. Memory of another scope stays where it is. Errors: *Error with ErrForeign; then none is moved.
func (e *Engine) Keep(all ...gorgonia.Tensor) error {
	owners := make([]*tensor.Tensor, 0, len(all))
	for _, t := range all {
		if t != nil && t.MemSize() == 0 {
			continue
		}
		b, err := e.block(t)
		if err != nil {
			return failed("Keep", err, t)
		}
		owners = append(owners, b.owner)
	}
	if len(e.scopes) == 1 {
		return nil
	}
	return failed("Keep", e.scope().Keep(owners...))
}

// New returns a tensor of zeros. tensor.New with WithEngine does, too, and panics with this error. Errors: *Error with ErrType,
// *tensor.ShapeError, or an error of the allocation, such as vram.ErrOutOfMemory.
func (e *Engine) New(of gorgonia.Dtype, shape ...int) (*gorgonia.Dense, error) {
	kind, err := typeOf(of)
	if err != nil {
		return nil, failed("New", err)
	}
	d, err := e.made(func(at tensor.Context) (*tensor.Tensor, error) { return tensor.Zeros(at, kind, shape...) })
	return d, failed("New", err)
}

// scope returns the innermost scope, which has ended after Close.
func (e *Engine) scope() *tensor.Scope {
	if len(e.scopes) == 0 {
		return nil // of an Engine that New has not made
	}
	return e.scopes[len(e.scopes)-1]
}

// cleared returns the errors of Memclr once.
func (e *Engine) cleared() error {
	err := e.failed
	e.failed = nil
	return err
}

// typeOf returns the element type of this module. Errors: ErrType.
func typeOf(of gorgonia.Dtype) (tensor.Type, error) {
	switch of {
	case gorgonia.Float32:
		return tensor.Float32, nil
	case gorgonia.Float64:
		return tensor.Float64, nil
	}
	return 0, ErrType
}

// made has f make a tensor in the innermost scope, and makes one of gorgonia.org/tensor over it. After an error it is freed. One without
// elements has no memory, and is freed at once: its scope would keep it without a use.
func (e *Engine) made(f func(at tensor.Context) (*tensor.Tensor, error)) (*gorgonia.Dense, error) {
	t, err := f(e.scope())
	if err != nil {
		return nil, err
	}
	of := gorgonia.Float32
	if t.Type() == tensor.Float64 {
		of = gorgonia.Float64
	}
	if t.Len() == 0 {
		return gorgonia.NewDense(of, t.Shape(), gorgonia.WithEngine(e)), t.Free()
	}
	b, err := e.blocks.add(t)
	if err != nil {
		return nil, err
	}
	return gorgonia.NewDense(of, t.Shape(), gorgonia.WithEngine(e), gorgonia.FromMemory(b.first, b.end-b.first)), nil
}

// operand returns a tensor of this module over the elements of one of gorgonia.org/tensor. It owns nothing.
func (e *Engine) operand(t gorgonia.Tensor) (*tensor.Tensor, error) {
	d, dense := t.(*gorgonia.Dense)
	if !dense || d == nil || len(d.Mask()) > 0 {
		return nil, ErrLayout
	}
	of, err := typeOf(d.Dtype())
	if err != nil {
		return nil, err
	}
	if d.Engine() != gorgonia.Engine(e) {
		return nil, ErrForeign
	}
	if d.MemSize() == 0 {
		empty, err := tensor.New(e.context, of, d.Shape()...) // in no scope: it never has memory
		if err == nil && empty.Len() > 0 {
			return nil, ErrLayout
		}
		return empty, err
	}
	buffer, begin, err := e.part(d, of)
	if err != nil {
		return nil, err
	}
	strides := d.Strides()
	if d.Shape().IsVectorLike() && len(strides) < d.Dims() { // in column-major order it has one stride, or none
		strides = slices.Repeat(append(slices.Clone(strides), 1)[:1], d.Dims())
	}
	l, err := layout.New(d.Shape(), strides, begin)
	if err != nil {
		return nil, errors.Join(ErrLayout, err)
	}
	if first, end := l.Bounds(); first < begin || end > begin+int(d.MemSize())/of.Size() {
		return nil, ErrLayout
	}
	return tensor.Over(e.scope(), buffer, of, l)
}
