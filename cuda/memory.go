package cuda

import "github.com/go-vram/vram/cudadrv"

// Memory is a Buffer, or a Range of one, as the methods that the command vram kernels generates take it. A launch refuses other
// types.
type Memory interface {
	// Ptr returns the address at which the memory begins.
	Ptr() cudadrv.Ptr
	// Live reports whether the buffer may be used.
	Live() bool
}

// Ptr returns the address at which the range begins.
func (r Range) Ptr() cudadrv.Ptr {
	return r.Buffer.Ptr() + cudadrv.Ptr(r.Offset) //nolint:gosec // within the buffer
}

// Live reports whether the range's buffer is live.
func (r Range) Live() bool { return r.Buffer.Live() }

// Mark returns the argument of a buffer or a range: Mark(b, Out) is Out(b), and Mark(Part(b, offset, bytes), Out) is
// Out(b).Of(offset, bytes). A launch refuses nil, and the argument of a nil mark.
func Mark(m Memory, mark func(Buffer) Arg) Arg {
	if mark == nil {
		return Arg{}
	}
	switch m := m.(type) { // not by methods, for which the memory would be allocated
	case Buffer:
		return mark(m)
	case Range:
		return mark(m.Buffer).Of(m.Offset, m.Bytes)
	case nil:
		return mark(Buffer{})
	}
	return Arg{}
}

// MarkOrNull is Mark, or Null for nil, the zero Buffer and the zero Range: see OrNull.
func MarkOrNull(m Memory, mark func(Buffer) Arg) Arg {
	switch m {
	case nil, Memory(Buffer{}), Memory(Range{}):
		return Null()
	}
	return Mark(m, mark)
}
