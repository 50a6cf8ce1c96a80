package tensor

import (
	"fmt"

	"github.com/go-vram/vram/compute/tensor/layout"
)

// Slot is memory for one tensor at a time, which costs no allocation of Go's heap then: for operations that need views and
// temporary tensors each time they run. A method that makes a tensor in a slot ends the one before, which must not be used any
// more. The zero value is ready. One goroutine uses a slot at a time, and a slot is not copied.
type Slot struct {
	tensor  Tensor
	storage storage
	memory  memory
}

// New makes a tensor with a layout, and allocates its memory, unless it has no element. No scope owns it: the caller frees it
// before the slot's next use. Errors: as the function New and Tensor.Allocate.
func (s *Slot) New(at Context, of Type, l layout.Layout) (*Tensor, error) {
	c, scope, err := contextOf(at)
	if err != nil {
		return nil, err
	}
	if !of.Valid() {
		return nil, &TypeError{"new", []Type{of}}
	}
	tag := ""
	if scope != nil {
		tag = scope.tag
	}
	_, places := l.Bounds()
	var shape [layout.MaxRank]int
	bytes, err := bytesOf("new", l.AppendShape(shape[:0]), places, of)
	if err != nil {
		return nil, err
	}
	s.Clear()
	if l.Len() > 0 {
		if s.memory.buffer, err = allocate(c, bytes, false, tag); err != nil {
			return nil, err
		}
		s.storage.memory.Store(&s.memory)
		s.storage.bytes = bytes
	}
	s.storage.on = c
	s.tensor = Tensor{storage: &s.storage, owner: &s.tensor, layout: l, of: of}
	return &s.tensor, nil
}

// View makes a view of a tensor with a layout. Errors: ErrNoTensor, ErrFreed, *LayoutError for a layout that leads out of the
// memory.
func (s *Slot) View(t *Tensor, l layout.Layout) (*Tensor, error) {
	if err := t.usable("view"); err != nil {
		return nil, err
	}
	if _, end := l.Bounds(); l.Len() > 0 && int64(end) > t.storage.bytes/int64(t.of.Size()) {
		return nil, &LayoutError{Op: "view", Layout: l, Detail: fmt.Sprintf("the memory has %d elements of %v", t.storage.bytes/int64(t.of.Size()), t.of)}
	}
	s.tensor = Tensor{storage: t.storage, owner: t.owner, layout: l, of: t.of, isView: true}
	return &s.tensor, nil
}

// Clear forgets the tensor.
func (s *Slot) Clear() {
	if s == nil {
		return
	}
	s.tensor = Tensor{}
	s.storage.memory.Store(nil)
	s.storage.on, s.storage.bytes = nil, 0
	s.memory = memory{}
}
