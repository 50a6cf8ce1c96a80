package gorgonia

import (
	"cmp"
	"errors"
	"slices"

	gorgonia "gorgonia.org/tensor"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// block is the memory of a tensor.
type block struct {
	first, end uintptr // addresses
	owner      *tensor.Tensor
}

// blocks are the memory of an engine in the order of addresses. They do not overlap.
type blocks []block

// add adds the memory of a tensor that has elements. After an error it is freed.
func (all *blocks) add(t *tensor.Tensor) (block, error) {
	buffer, err := t.Buffer()
	if err != nil {
		return block{}, errors.Join(err, t.Free())
	}
	b := block{buffer.Uintptr(), buffer.Uintptr() + uintptr(t.Bytes()), t}
	at, _ := all.search(b.first)
	*all = slices.Insert(*all, at, b)
	return b, nil
}

// find returns the block that contains a part of memory. Errors: ErrForeign.
func (all *blocks) find(address, bytes uintptr) (block, error) {
	at, exactly := all.search(address)
	if !exactly {
		at--
	}
	if at < 0 || address >= (*all)[at].end || bytes > (*all)[at].end-address {
		return block{}, ErrForeign
	}
	return (*all)[at], nil
}

// remove forgets a block.
func (all *blocks) remove(b block) {
	if at, found := all.search(b.first); found {
		*all = slices.Delete(*all, at, at+1)
	}
}

// sweep forgets the blocks that were freed.
func (all *blocks) sweep() {
	*all = slices.DeleteFunc(*all, func(b block) bool { return !b.owner.Live() })
}

func (all *blocks) search(address uintptr) (int, bool) {
	return slices.BinarySearchFunc(*all, address, func(b block, address uintptr) int { return cmp.Compare(b.first, address) })
}

// block returns the block that contains memory. Errors: ErrForeign.
func (e *Engine) block(m gorgonia.Memory) (block, error) {
	if m == nil || m.MemSize() == 0 {
		return block{}, ErrForeign
	}
	return e.blocks.find(m.Uintptr(), m.MemSize())
}

// AllocAccessible is false: the memory is the device's.
func (e *Engine) AllocAccessible() bool { return false }

// NonStdAlloc marks an engine that does not allocate on Go's heap.
func (e *Engine) NonStdAlloc() {}

// Alloc allocates memory in the innermost scope, and submits a fill with zeros. The Memory is a cuda.Buffer. Errors: *Error with
// an error of the allocation, such as vram.ErrOutOfMemory.
func (e *Engine) Alloc(bytes int64) (gorgonia.Memory, error) {
	if bytes == 0 {
		return cuda.Buffer{}, nil
	}
	t, err := tensor.Zeros(e.scope(), tensor.Uint8, int(bytes))
	if err != nil {
		return nil, failed("Alloc", err)
	}
	if _, err := e.blocks.add(t); err != nil {
		return nil, failed("Alloc", err)
	}
	buffer, err := t.Buffer()
	return buffer, failed("Alloc", err)
}

// Free frees the memory of a tensor before its scope ends, in the order of the stream: earlier work has it. It wants the whole
// memory, not a slice of it; the size is not used. Errors: *Error with ErrForeign.
func (e *Engine) Free(m gorgonia.Memory, _ int64) error {
	if m != nil && m.MemSize() == 0 {
		return nil
	}
	b, err := e.block(m)
	if err == nil && m.Uintptr() != b.first {
		err = ErrForeign
	}
	if err != nil {
		return failed("Free", err, m)
	}
	e.blocks.remove(b)
	return failed("Free", b.owner.Free(), m)
}

// part returns the buffer that contains memory, and the element of it at which the memory begins. Errors: ErrForeign, ErrLayout.
func (e *Engine) part(m gorgonia.Memory, of tensor.Type) (cuda.Buffer, int, error) {
	b, err := e.block(m)
	if err != nil {
		return cuda.Buffer{}, 0, err
	}
	offset, size := m.Uintptr()-b.first, uintptr(of.Size())
	if offset%size != 0 || m.MemSize()%size != 0 {
		return cuda.Buffer{}, 0, ErrLayout
	}
	buffer, err := b.owner.Buffer()
	return buffer, int(offset / size), err
}

// view returns memory as a tensor of one dimension.
func (e *Engine) view(m gorgonia.Memory, of tensor.Type) (*tensor.Tensor, error) {
	buffer, begin, err := e.part(m, of)
	if err != nil {
		return nil, err
	}
	l, err := layout.New([]int{int(m.MemSize()) / of.Size()}, []int{1}, begin)
	if err != nil {
		return nil, err
	}
	return tensor.Over(e.context, buffer, of, l)
}

// fill submits a fill of memory.
func fill[T float32 | float64 | uint8](e *Engine, m gorgonia.Memory, of tensor.Type, value T) error {
	t, err := e.view(m, of)
	if err != nil {
		return err
	}
	return tensor.Fill(e.context, t, value)
}

// Memset submits a fill of memory with a float32 or a float64. Errors: *Error with ErrType, ErrLayout, ErrForeign.
func (e *Engine) Memset(m gorgonia.Memory, value any) error {
	if m != nil && m.MemSize() == 0 {
		return nil
	}
	err := ErrType
	switch value := value.(type) {
	case float32:
		err = fill(e, m, tensor.Float32, value)
	case float64:
		err = fill(e, m, tensor.Float64, value)
	}
	return failed("Memset", err, m, value)
}

// Memclr submits a fill of memory with zeros. It cannot return an error: the Scoped around it does, or Close.
func (e *Engine) Memclr(m gorgonia.Memory) {
	if m != nil && m.MemSize() == 0 || e.failed != nil {
		return
	}
	e.failed = failed("Memclr", fill(e, m, tensor.Uint8, uint8(0)), m)
}

// Memcpy submits a copy of memory of the engine to other memory of it, of the same size. Read and Write copy to and from the
// host. Errors: *Error with ErrShape for two sizes, ErrForeign.
func (e *Engine) Memcpy(dst, src gorgonia.Memory) error {
	switch {
	case dst == nil || src == nil:
		return failed("Memcpy", ErrForeign)
	case dst.MemSize() != src.MemSize():
		return failed("Memcpy", ErrShape, dst, src)
	case dst.MemSize() == 0:
		return nil
	}
	to, err := e.view(dst, tensor.Uint8)
	from, other := e.view(src, tensor.Uint8)
	if err = cmp.Or(err, other); err == nil {
		err = tensor.Copy(e.context, to, from)
	}
	return failed("Memcpy", err, dst, src)
}

// Accessible returns an *Error with ErrInaccessible: Read copies values.
func (e *Engine) Accessible(m gorgonia.Memory) (gorgonia.Memory, error) {
	return nil, failed("Accessible", ErrInaccessible, m)
}

// WorksWith is true: operands may have any strides.
func (e *Engine) WorksWith(gorgonia.DataOrder) bool { return true }
