package cuda

import (
	"errors"
	"math"
	"math/bits"
	"unsafe"
)

// Elements returns the part of a buffer with count elements of a type from number first on. Work on it is refused with a
// *RangeError if the buffer does not have all of them.
func Elements[T Element](b Buffer, first, count int) Range {
	return Part(b, bytesOfCount[T](first), bytesOfCount[T](count))
}

// bytesOfCount returns the size of elements; one that is too large or below 0 stays so, and is within no buffer.
func bytesOfCount[T Element](count int) int64 {
	var element T
	if count < 0 {
		return -1
	}
	high, low := bits.Mul64(uint64(count), uint64(unsafe.Sizeof(element)))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// From allocates a buffer for values and copies them into it. The slice may be changed when it returns: the driver may wait for
// that. The caller frees the buffer. It returns the errors of Alloc and CopyIn; then there is no buffer.
func From[T Element](c *Context, values []T) (b Buffer, err error) {
	b, err = c.Alloc(int64(len(bytesOf(values))))
	if err != nil {
		return Buffer{}, err
	}
	copied := false
	defer func() {
		if !copied { // also after a panic of the driver
			err = errors.Join(err, b.Free())
			b = Buffer{}
		}
	}()
	err = CopyIn(c, b, values)
	copied = err == nil
	return b, err
}

// Load returns count elements from the begin of a range, and waits until they are there. Errors: a *LengthError if the range is
// shorter, and the errors of CopyOut.
func Load[T Element](c *Context, src Range, count int) ([]T, error) {
	bytes := bytesOfCount[T](count)
	if err := c.has(src, false, bytes, &LengthError{SrcBytes: src.Bytes, DstBytes: bytes}); err != nil {
		return nil, named("Load", err)
	}
	values := make([]T, count)
	if err := c.CopyOutAt(bytesOf(values), src.Buffer, src.Offset); err != nil {
		return nil, named("Load", err)
	}
	return values, nil
}

// Store copies values to the begin of a range. The slice may be changed when it returns: the driver may wait for that. Errors: a
// *LengthError if the range is shorter, and the errors of CopyIn.
func Store[T Element](c *Context, dst Range, values []T) error {
	bytes := bytesOf(values)
	if err := c.has(dst, true, int64(len(bytes)), &LengthError{DstBytes: dst.Bytes, SrcBytes: int64(len(bytes))}); err != nil {
		return named("Store", err)
	}
	return named("Store", c.CopyInAt(dst.Buffer, dst.Offset, bytes))
}

// has returns the error of a range that cannot be used, or has fewer bytes than are wanted.
func (c *Context) has(r Range, writes bool, bytes int64, short error) error {
	if !c.opened() {
		return ErrNotOpen
	}
	if _, err := c.check(r, writes); err != nil {
		return err
	}
	if bytes < 0 || bytes > r.Bytes {
		return short
	}
	return nil
}
