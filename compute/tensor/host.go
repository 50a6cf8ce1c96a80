package tensor

import (
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// From makes a tensor with the values of a slice, in row-major order. Without a shape it has one dimension, of the slice's
// length. The slice may be changed when it returns. Errors: *ShapeError, *LengthError, and as Tensor.Allocate and cuda.CopyIn,
// such as cuda.ErrCapturing.
func From[T Element](at Context, values []T, shape ...int) (*Tensor, error) {
	if len(shape) == 0 {
		shape = []int{len(values)}
	}
	return from(at, values, shape)
}

// Scalar makes a tensor of one element and no dimensions. Errors: as From.
func Scalar[T Element](at Context, value T) (*Tensor, error) { return from(at, []T{value}, nil) }

func from[T Element](at Context, values []T, shape []int) (*Tensor, error) {
	count, err := layout.Count(shape...)
	if err != nil {
		return nil, err
	}
	if count != len(values) {
		return nil, &LengthError{"from", slices.Clone(shape), count, len(values)}
	}
	t, err := New(at, TypeOf[T](), shape...)
	if err != nil {
		return nil, err
	}
	return filled(t, Write(t, values))
}

// Write copies a slice, in row-major order, to the elements of a tensor or view. The slice may be changed when it returns.
// Errors: *TypeError, *LengthError, *LayoutError for a view that repeats elements, ErrFreed, and as Tensor.Allocate and
// cuda.CopyIn.
func Write[T Element](t *Tensor, values []T) error {
	if err := fits[T]("write", t, len(values)); err != nil || len(values) == 0 {
		return err
	}
	c := t.storage.on
	if t.layout.Contiguous() {
		r, err := t.Range()
		if err != nil {
			return err
		}
		return c.CopyInAt(r.Buffer, r.Offset, hostBytes(values))
	}
	if t.layout.MayOverlap() {
		return &LayoutError{Op: "write", Layout: t.layout, Detail: "the tensor has elements that are one"}
	}
	b, err := t.memory("write")
	if err != nil {
		return err
	}
	packed, err := layout.Of(t.Shape()...)
	if err != nil {
		return err
	}
	return staged(c, t.Bytes(), func(stage cuda.Buffer) error {
		if err := c.CopyInAt(stage, 0, hostBytes(values)); err != nil {
			return err
		}
		return rows{c, b, stage, int64(t.of.Size())}.copy(t.layout, packed)
	})
}

// Read returns the elements of a tensor or view in row-major order. It waits for the work that was submitted on it. Errors:
// *TypeError, ErrFreed, and as Tensor.Allocate and cuda.CopyOut, such as cuda.ErrCapturing.
func Read[T Element](t *Tensor) ([]T, error) {
	if err := fits[T]("read", t, t.Len()); err != nil {
		return nil, err
	}
	values := make([]T, t.Len())
	if err := ReadInto(values, t); err != nil {
		return nil, err
	}
	return values, nil
}

// ReadInto is Read into a slice of the caller's. Errors: also *LengthError.
func ReadInto[T Element](values []T, t *Tensor) error {
	if err := fits[T]("read", t, len(values)); err != nil || len(values) == 0 {
		return err
	}
	if err := t.read(hostBytes(values)); err != nil {
		return err
	}
	if t.of == Bool {
		raw := hostBytes(values)
		for i, b := range raw { // a bool of Go is 0 or 1, whichever byte a kernel wrote
			raw[i] = min(b, 1)
		}
	}
	return nil
}

// Item returns the value of a tensor of one element: it waits. Errors: as Read, ErrScalar.
func Item[T Element](t *Tensor) (T, error) {
	var value [1]T
	if t.Len() != 1 {
		if err := t.usable("item"); err != nil {
			return value[0], err
		}
		return value[0], t.failed("item", ErrScalar)
	}
	err := ReadInto(value[:], t)
	return value[0], err
}

// fits returns the error of a tensor that has another type or length than a slice, or that cannot be used.
func fits[T Element](op string, t *Tensor, hostLen int) error {
	if err := t.usable(op); err != nil {
		return err
	}
	if of := TypeOf[T](); of != t.of {
		return &TypeError{op, []Type{t.of, of}}
	}
	if hostLen != t.Len() {
		return &LengthError{op, t.Shape(), t.Len(), hostLen}
	}
	return nil
}

// hostBytes returns the memory of a slice.
func hostBytes[T Element](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(values[0])))
}

const (
	// maxLoose is how many bytes the host reads for each byte of a view: beyond it the elements are packed on
	// the device first.
	maxLoose = 4
	// looseBytes are read in any case: a copy of so many takes no longer than a copy on the device and the
	// wait for it.
	looseBytes = 64 << 10
)

// read copies the elements to the host in row-major order.
func (t *Tensor) read(to []byte) error {
	c := t.storage.on
	r, err := t.Range()
	if err != nil {
		return err
	}
	if t.layout.Contiguous() {
		return c.CopyOutAt(to, r.Buffer, r.Offset)
	}
	if r.Bytes > max(looseBytes, maxLoose*int64(len(to))) {
		if err := c.Synchronize(context.Background()); err != nil { // in a capture nothing is to be submitted
			return err
		}
		return t.packed(func(packed cuda.Range) error { return c.CopyOutAt(to, packed.Buffer, 0) })
	}
	span := make([]byte, r.Bytes)
	if err := c.CopyOutAt(span, r.Buffer, r.Offset); err != nil {
		return err
	}
	first, _ := t.layout.Bounds()
	size := t.of.Size()
	for place := range t.layout.Places() {
		to = to[copy(to, span[(place-first)*size:][:size]):]
	}
	return nil
}

// Fill submits fills that set all elements to a value. It does not wait. Errors: *TypeError, *LayoutError for a view that
// repeats elements, ErrNoTensor, ErrFreed, ErrNotOpen, and as cuda.Context.Fill32 and Copy.
func Fill[T Element](at Context, t *Tensor, value T) error {
	c, _, err := contextOf(at)
	if err != nil {
		return err
	}
	if err := fits[T]("fill", t, t.Len()); err != nil || t.Len() == 0 {
		return err
	}
	contiguous := t.layout.Contiguous()
	if !contiguous && t.layout.MayOverlap() {
		return &LayoutError{Op: "fill", Layout: t.layout, Detail: "the tensor has elements that are one"}
	}
	b, err := t.memory("fill")
	if err != nil {
		return err
	}
	bits := hostBytes([]T{value})
	if contiguous {
		return fill(c, b, t.layout, bits)
	}
	return staged(c, int64(len(bits)), func(stage cuda.Buffer) error {
		if err := fill(c, stage, layout.Layout{}, bits); err != nil {
			return err
		}
		var shape [layout.MaxRank]int
		one, err := layout.Layout{}.Broadcast(t.layout.AppendShape(shape[:0])...)
		if err != nil {
			return err
		}
		return rows{c, b, stage, int64(len(bits))}.copy(t.layout, one)
	})
}

// fill sets contiguous elements.
func fill(c *cuda.Context, b cuda.Buffer, l layout.Layout, bits []byte) error {
	size := int64(len(bits))
	first, end := l.Bounds()
	r := cuda.Part(b, int64(first)*size, int64(end-first)*size)
	switch size {
	case 1:
		return c.Fill8(r, bits[0])
	case 2:
		return c.Fill16(r, uint16(bits[0])|uint16(bits[1])<<8)
	}
	word := func(at int) uint32 {
		return uint32(bits[at]) | uint32(bits[at+1])<<8 | uint32(bits[at+2])<<16 | uint32(bits[at+3])<<24
	}
	if size == 4 || word(0) == word(4) {
		return c.Fill32(r, word(0))
	}
	// One element is written in halves, and doubled.
	if err := errors.Join(c.Fill32(cuda.Part(b, r.Offset, 4), word(0)), c.Fill32(cuda.Part(b, r.Offset+4, 4), word(4))); err != nil {
		return err
	}
	for done := size; done < r.Bytes; done *= 2 {
		more := min(done, r.Bytes-done)
		if err := c.Copy(cuda.Part(b, r.Offset+done, more), cuda.Part(b, r.Offset, more)); err != nil {
			return err
		}
	}
	return nil
}

// Full makes a tensor whose elements have a value. Errors: as New and Fill.
func Full[T Element](at Context, value T, shape ...int) (*Tensor, error) {
	t, err := New(at, TypeOf[T](), shape...)
	if err != nil {
		return nil, err
	}
	return filled(t, Fill(at, t, value))
}
