package tensor

import (
	"errors"
	"math"

	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// maxPitchBytes is the largest distance of two rows in a copy of the driver (CU_DEVICE_ATTRIBUTE_MAX_PITCH of
// all devices that are known).
const maxPitchBytes = math.MaxInt32

// Copy submits copies of the elements of src to dst, which has the same type and the same shape, or one to which src can be
// broadcast. It does not wait. Both may be views, also of one storage: Copy stages the source where they overlap. Errors:
// *TypeError, *ShapeError, *LayoutError for a destination that repeats elements, ErrNoTensor, ErrFreed, ErrNotOpen, and as
// cuda.Context.Copy2D, such as cuda.ErrForeign for a tensor of another device: To copies between devices.
func Copy(at Context, dst, src *Tensor) error {
	c, _, err := contextOf(at)
	if err != nil {
		return err
	}
	if err := errors.Join(dst.usable("copy to"), src.usable("copy of")); err != nil {
		return err
	}
	if dst.of != src.of {
		return &TypeError{"copy", []Type{dst.of, src.of}}
	}
	from := src.layout
	if !layout.SameShape(dst.layout, from) {
		if from, err = from.Broadcast(dst.layout.Shape()...); err != nil {
			return &ShapeError{Op: "copy", Shapes: [][]int{dst.Shape(), src.Shape()}}
		}
	}
	if dst.layout.MayOverlap() {
		return &LayoutError{Op: "copy", Layout: dst.layout, Detail: "the destination has elements that are one"}
	}
	if dst.Len() == 0 {
		return nil
	}
	to, err := dst.memory("copy to")
	if err != nil {
		return err
	}
	source, err := src.memory("copy of")
	if err != nil {
		return err
	}
	if to != source || !layout.Meet(dst.layout, from) {
		if dst.layout.Contiguous() && from.Contiguous() { // without a plan, which is memory of the heap
			return c.Copy(dst.part(to), src.part(source))
		}
		return rows{c, to, source, int64(dst.of.Size())}.copy(dst.layout, from)
	}
	if dst.layout == from {
		return nil
	}
	return staged(c, src.Bytes(), func(stage cuda.Buffer) error {
		packed, err := layout.Of(src.Shape()...)
		if err != nil {
			return err
		}
		if err := (rows{c, stage, source, int64(src.of.Size())}).copy(packed, src.layout); err != nil {
			return err
		}
		if packed, err = packed.Broadcast(dst.layout.Shape()...); err != nil {
			return err
		}
		return rows{c, to, stage, int64(src.of.Size())}.copy(dst.layout, packed)
	})
}

// part returns the elements of a contiguous tensor in its memory.
func (t *Tensor) part(b cuda.Buffer) cuda.Range {
	size := int64(t.of.Size())
	return cuda.Part(b, int64(t.layout.Offset())*size, int64(t.layout.Len())*size)
}

// staged passes a temporary buffer to f, and frees it after the work that f submits.
func staged(c *cuda.Context, bytes int64, f func(stage cuda.Buffer) error) (err error) {
	stage, err := c.Alloc(bytes)
	if err != nil {
		return err
	}
	defer func() { // also after a panic of the driver
		if freed := stage.Free(); freed != nil {
			err = errors.Join(err, freed)
		}
	}()
	return f(stage)
}

// rows copies between two buffers.
type rows struct {
	on       *cuda.Context
	dst, src cuda.Buffer
	size     int64 // of an element
}

// copy submits the copies of rows that copy one layout to another of the same shape.
func (x rows) copy(dst, src layout.Layout) error {
	for r := range layout.Copies(dst, src, int(maxPitchBytes/x.size)) {
		from := x.src
		if r.Again {
			from = x.dst
		}
		to, width := int64(r.Dst)*x.size, int64(r.Width)*x.size
		var err error
		if r.Count == 1 {
			err = x.on.Copy(cuda.Part(x.dst, to, width), cuda.Part(from, int64(r.Src)*x.size, width))
		} else {
			err = x.on.Copy2D(cuda.Rows{Buffer: x.dst, Offset: to, Pitch: int64(r.DstPitch) * x.size},
				cuda.Rows{Buffer: from, Offset: int64(r.Src) * x.size, Pitch: int64(r.SrcPitch) * x.size}, width, int64(r.Count))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Clone makes a contiguous tensor with the same elements. Errors: as Copy and New.
func Clone(at Context, t *Tensor) (*Tensor, error) {
	if err := t.usable("clone"); err != nil {
		return nil, err
	}
	to, err := New(at, t.of, t.Shape()...)
	if err != nil {
		return nil, err
	}
	return filled(to, Copy(at, to, t))
}

// filled returns a new tensor, which is freed if it could not be filled.
func filled(t *Tensor, err error) (*Tensor, error) {
	if err != nil {
		return nil, errors.Join(err, t.Free())
	}
	return t, nil
}

// Contiguous returns t itself if its elements lie in row-major order without a gap, and else a Clone. Errors: as Clone.
func Contiguous(at Context, t *Tensor) (*Tensor, error) {
	if err := t.usable("contiguous"); err != nil {
		return nil, err
	}
	if t.layout.Contiguous() {
		return t, nil
	}
	return Clone(at, t)
}

// To makes a contiguous tensor with the same elements on the device of another context. It does not wait. On the tensor's own
// device it is Clone. Errors: as Clone and cuda.Context.CopyPeer.
func To(at Context, t *Tensor) (*Tensor, error) {
	c, err := ContextOf(at)
	if err != nil {
		return nil, err
	}
	if err := t.usable("clone"); err != nil {
		return nil, err
	}
	to, err := New(at, t.of, t.Shape()...)
	if err != nil {
		return nil, err
	}
	if err := Copy(at, to, t); !errors.Is(err, cuda.ErrForeign) {
		return filled(to, err)
	}
	dst, err := to.Range()
	if err != nil {
		return filled(to, err)
	}
	if t.layout.Contiguous() {
		src, err := t.Range()
		if err == nil {
			err = c.CopyPeer(dst, t.storage.on, src)
		}
		return filled(to, err)
	}
	return filled(to, t.packed(func(packed cuda.Range) error { return c.CopyPeer(dst, t.storage.on, packed) }))
}

// packed passes f the elements in row-major order without gaps, in a buffer that is freed after the work of f on the tensor's
// stream.
func (t *Tensor) packed(f func(packed cuda.Range) error) error {
	b, err := t.memory("pack")
	if err != nil {
		return err
	}
	l, err := layout.Of(t.Shape()...)
	if err != nil {
		return err
	}
	return staged(t.storage.on, t.Bytes(), func(stage cuda.Buffer) error {
		if err := (rows{t.storage.on, stage, b, int64(t.of.Size())}).copy(l, t.layout); err != nil {
			return err
		}
		return f(cuda.Whole(stage))
	})
}
