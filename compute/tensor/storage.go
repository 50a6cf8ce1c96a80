package tensor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/streams"
)

// storage is the memory of a tensor and its views.
type storage struct {
	on     *cuda.Context // on whose stream the memory is allocated
	bytes  int64
	zeroed bool   // at the first use
	tag    string // of the memory

	memory atomic.Pointer[memory] // nil before the first use

	// Of the scope's goroutine.
	scope *Scope
	index int        // in the scope's list
	site  site.Stack // where the tensor was made
}

// memory is the buffer of a storage. The zero Buffer stands for one that was freed before its first use.
type memory struct{ buffer cuda.Buffer }

// buffer returns the memory, which the first call allocates. Of several first calls one wins, and the others free their
// memory. Errors: ErrFreed, as cuda.Context.Alloc.
func (s *storage) buffer() (cuda.Buffer, error) {
	m := s.memory.Load()
	if m == nil {
		if s.bytes == 0 {
			return cuda.Buffer{}, nil
		}
		own, err := s.allocate()
		if err != nil {
			return cuda.Buffer{}, err
		}
		if s.memory.CompareAndSwap(nil, own) {
			return own.buffer, nil
		}
		if err := own.buffer.Free(); err != nil {
			return cuda.Buffer{}, err
		}
		m = s.memory.Load()
	}
	if !m.buffer.Live() {
		return cuda.Buffer{}, ErrFreed
	}
	return m.buffer, nil
}

func (s *storage) allocate() (*memory, error) {
	b, err := allocate(s.on, s.bytes, s.zeroed, s.tag)
	if err != nil {
		return nil, err
	}
	return &memory{b}, nil
}

// allocate allocates memory on a context's stream.
func allocate(on *cuda.Context, bytes int64, zeroed bool, tag string) (cuda.Buffer, error) {
	switch {
	case tag != "":
		return on.AllocFor(context.Background(), streams.Request{Bytes: bytes, Zero: zeroed, Tag: tag})
	case zeroed:
		return on.AllocZeroed(bytes)
	}
	return on.Alloc(bytes)
}

// freed reports whether a use would be refused.
func (s *storage) freed() bool {
	m := s.memory.Load()
	return m != nil && !m.buffer.Live()
}

// free frees the memory, or sees to it that there will be none.
func (s *storage) free() error {
	m := s.memory.Load()
	if m == nil {
		if s.memory.CompareAndSwap(nil, &memory{}) {
			return nil
		}
		m = s.memory.Load()
	}
	if m.buffer == (cuda.Buffer{}) {
		return ErrFreed
	}
	err := m.buffer.Free()
	if errors.Is(err, streams.ErrBadFree) {
		return fmt.Errorf("%w: %w", ErrFreed, err)
	}
	return err
}

// bytesOf returns the size of so many elements. Errors: *ShapeError with ErrTooLarge.
func bytesOf(op string, shape []int, count int, t Type) (int64, error) {
	if size := t.Size(); count > math.MaxInt64/max(size, 1) {
		return 0, &ShapeError{Op: op, Shapes: [][]int{slices.Clone(shape)}, Detail: t.String(), Err: ErrTooLarge}
	}
	return int64(count) * int64(t.Size()), nil
}

// Made is a tensor in a report.
type Made struct {
	Type  Type
	Shape []int
	Bytes int64
	Site  site.Stack // where it was made, in scopes with the option Sites
}

// String has the type, the shape and the site.
func (m Made) String() string {
	text := fmt.Sprintf("%v%v, %d bytes", m.Type, m.Shape, m.Bytes)
	if m.Site.Known() {
		text += ", made in " + m.Site.String()
	}
	return text
}
