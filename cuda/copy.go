package cuda

import (
	"errors"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// Range is a part of a buffer.
type Range struct {
	Buffer        Buffer
	Offset, Bytes int64
}

// Whole returns all of a buffer.
func Whole(b Buffer) Range { return Range{Buffer: b, Bytes: b.Bytes()} }

// Part returns some bytes of a buffer.
func Part(b Buffer, offset, bytes int64) Range { return Range{b, offset, bytes} }

// Element is the type set of elements of host slices.
type Element interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// bytesOf returns the memory of a slice.
func bytesOf[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// access is the use of a range by a piece of work.
type access struct {
	Range

	writes bool
}

func reading(r Range) access { return access{r, false} }
func writing(r Range) access { return access{r, true} }

// on submits one driver call with work on ranges of buffers. Like Launch, it checks, orders and announces them.
func (c *Context) on(submit func() error, all ...access) error {
	if !c.opened() {
		return ErrNotOpen
	}
	return c.onIn(c.capture.Load(), submit, all)
}

// onIn is on for a capture, or for nil outside of any: see submission.submit.
func (c *Context) onIn(held *capture, submit func() error, all []access) error {
	if held == nil {
		if done, err := c.quicklyOn(submit, all); done {
			return err
		}
	}
	return c.onFor(held, c.work.Crossing(), submit, all)
}

// quicklyOn submits work on ranges that need no order. done is false if they do.
func (c *Context) quicklyOn(submit func() error, all []access) (done bool, err error) {
	if c.work.EnterQuick() != nil { // onFor says why
		return false, nil
	}
	defer c.work.LeaveQuick()
	for _, a := range all {
		if plain, err := c.check(a.Range, a.writes); !plain {
			return err != nil, err
		}
	}
	return true, c.failure(submit())
}

// onFor submits as on does, for a capture, or for nil outside of any.
func (c *Context) onFor(held *capture, crossing streams.Crossing, submit func() error, all []access) error {
	defer crossing.Leave()
	for i, a := range all {
		_, err := c.check(a.Range, a.writes)
		switch {
		case err != nil:
		case held != nil:
			err = held.touch(c.submission, a.Buffer, a.writes)
		default:
			err = crossing.Touch(a.Buffer, a.writes, i)
		}
		if err != nil {
			return err
		}
	}
	if i, err := crossing.Begin(); err != nil {
		return ofBytes(err, all[i].Buffer)
	}
	if err := c.submit(held, submit); err != nil {
		return err
	}
	crossing.After()
	return nil
}

// CopyIn copies a slice into a buffer, from the offset 0 on. The slice may be changed when it returns: the driver may wait for
// that. Errors: ErrNotLive, ErrForeign, *RangeError, *vram.CaptureError, vram.ErrClosed, a *vram.StrandedError, and the
// driver's.
func CopyIn[T Element](c *Context, dst Buffer, src []T) error {
	return c.CopyInAt(dst, 0, bytesOf(src))
}

// CopyOut copies the begin of a buffer into a slice, and waits until it is there. It returns the errors of CopyIn.
func CopyOut[T Element](c *Context, dst []T, src Buffer) error {
	return c.CopyOutAt(bytesOf(dst), src, 0)
}

// CopyInAt copies bytes to an offset, as CopyIn does.
func (c *Context) CopyInAt(dst Buffer, offset int64, src []byte) error {
	return c.settled(src, func() error { return c.copyIn(Part(dst, offset, int64(len(src))), src, true) })
}

// CopyOutAt copies bytes from an offset, as CopyOut does.
func (c *Context) CopyOutAt(dst []byte, src Buffer, offset int64) error {
	return c.settled(dst, func() error { return c.copyOut(dst, Part(src, offset, int64(len(dst))), true) })
}

// CopyInAsync submits a copy from host memory. The caller must not change the bytes before the device has copied them. If they
// are not page-locked, the driver may wait. In a capture, each launch of the graph copies the bytes as they are at that time,
// so the caller keeps them for the life of the graph. Errors: those of Copy.
func (c *Context) CopyInAsync(dst Range, src []byte) error { return c.copyIn(dst, src, false) }

// CopyOutAsync submits a copy to host memory. CopyInAsync describes the lifetime of the bytes.
func (c *Context) CopyOutAsync(dst []byte, src Range) error { return c.copyOut(dst, src, false) }

func (c *Context) copyIn(dst Range, src []byte, waits bool) error {
	if err := c.hostCopy("cuMemcpyHtoDAsync", dst.Bytes, int64(len(src)), waits); err != nil {
		return err
	}
	return named("Context.CopyIn", c.hostWork(func() error { return c.host.MemcpyHtoDAsync(dst.Ptr(), src, c.handle) }, writing(dst)))
}

func (c *Context) copyOut(dst []byte, src Range, waits bool) error {
	if err := c.hostCopy("cuMemcpyDtoHAsync", int64(len(dst)), src.Bytes, waits); err != nil {
		return err
	}
	return named("Context.CopyOut", c.hostWork(func() error { return c.host.MemcpyDtoHAsync(dst, src.Ptr(), c.handle) }, reading(src)))
}

// hostWork submits a copy to or from host memory, in which the driver may wait.
func (c *Context) hostWork(submit func() error, all ...access) error {
	return c.onFor(c.capture.Load(), c.work.CrossingOfWaits(), submit, all)
}

// hostCopy returns the error of a copy that cannot be made.
func (c *Context) hostCopy(function string, dstBytes, srcBytes int64, waits bool) error {
	switch {
	case !c.opened():
		return ErrNotOpen
	case c.host == nil:
		return unsupported(function)
	case dstBytes != srcBytes:
		return &LengthError{dstBytes, srcBytes}
	case waits:
		return c.work.AwaitOthers() // the driver itself may wait in the copy
	}
	return nil
}

// settled submits a copy and waits until the device has done with host memory. No capture of the stream begins in between.
func (c *Context) settled(host []byte, submit func() error) error {
	if !c.opened() {
		return ErrNotOpen
	}
	return c.outside("a copy that waits", func() error {
		if err := submit(); err != nil || len(host) == 0 {
			return err
		}
		return c.work.Await()
	})
}

// Copy submits a copy within the device. After an error nothing was submitted: *LengthError, ErrNotOpen, ErrNotLive,
// ErrForeign, ErrAsleep, *RangeError, vram.ErrClosed, and the driver's; a *vram.CaptureError while a capture of the context's
// own stream begins or ends, or while another stream is captured that owns the buffers or whose work on them the copy must
// follow.
func (c *Context) Copy(dst, src Range) error {
	if dst.Bytes != src.Bytes {
		return &LengthError{dst.Bytes, src.Bytes}
	}
	return named("Context.Copy", c.on(func() error { return c.device.MemcpyDtoDAsync(dst.Ptr(), src.Ptr(), dst.Bytes, c.handle) }, writing(dst), reading(src)))
}

// Rows is a number of rows of bytes in a buffer: Pitch is the distance between the begins of two rows.
type Rows struct {
	Buffer        Buffer
	Offset, Pitch int64
}

// Copy2D submits a copy of a number of rows of widthBytes within the device. It returns the errors of Copy.
func (c *Context) Copy2D(dst, src Rows, widthBytes, rows int64) error {
	if !c.opened() {
		return ErrNotOpen
	}
	if c.wide == nil {
		return unsupported("cuMemcpy2DAsync")
	}
	if widthBytes <= 0 || rows <= 0 {
		if widthBytes < 0 || rows < 0 {
			return &RangeError{dst.Offset, widthBytes, dst.Buffer.Bytes()}
		}
		return nil
	}
	to, err := dst.covered(widthBytes, rows)
	if err != nil {
		return err
	}
	from, err := src.covered(widthBytes, rows)
	if err != nil {
		return err
	}
	return named("Context.Copy2D", c.on(func() error {
		return c.wide.Memcpy2DAsync(cudadrv.Copy2D{
			Dst: to.Ptr(), Src: from.Ptr(), DstPitch: dst.Pitch, SrcPitch: src.Pitch, WidthBytes: widthBytes, Rows: rows,
		}, c.handle)
	}, writing(to), reading(from)))
}

// covered returns the range from the first byte of rows to the last.
func (r Rows) covered(widthBytes, rows int64) (Range, error) {
	if r.Pitch < widthBytes || rows-1 > (r.Buffer.Bytes()-widthBytes)/r.Pitch {
		return Range{}, &RangeError{r.Offset, widthBytes, r.Buffer.Bytes()}
	}
	return Part(r.Buffer, r.Offset, (rows-1)*r.Pitch+widthBytes), nil
}

// Fill8 submits a fill with a byte. It returns the errors of Copy.
func (c *Context) Fill8(r Range, value uint8) error {
	if !c.opened() {
		return ErrNotOpen
	}
	return c.fill8(c.capture.Load(), r, value)
}

// fill8 is Fill8 for a capture, or for nil outside of any.
func (c *Context) fill8(held *capture, r Range, value uint8) error {
	submit := func() error { return c.device.MemsetD8Async(r.Ptr(), value, r.Bytes, c.handle) }
	return named("Context.Fill8", c.onIn(held, submit, []access{writing(r)}))
}

// Fill16 submits a fill with a 2-byte value: the range begins and ends at multiples of 2. It returns the errors of Copy.
func (c *Context) Fill16(r Range, value uint16) error {
	return c.fill("cuMemsetD16Async", r, 2, func(count int64) error { return c.wide.MemsetD16Async(r.Ptr(), value, count, c.handle) })
}

// Fill32 submits a fill with a 4-byte value, such as a float32: the range begins and ends at multiples of 4. It returns the
// errors of Copy.
func (c *Context) Fill32(r Range, value uint32) error {
	return c.fill("cuMemsetD32Async", r, 4, func(count int64) error { return c.wide.MemsetD32Async(r.Ptr(), value, count, c.handle) })
}

func (c *Context) fill(function string, r Range, size int64, submit func(count int64) error) error {
	switch {
	case !c.opened():
		return ErrNotOpen
	case c.wide == nil:
		return unsupported(function)
	case r.Offset%size != 0 || r.Bytes%size != 0:
		return &RangeError{r.Offset, r.Bytes, r.Buffer.Bytes()}
	}
	return named([...]string{2: "Context.Fill16", 4: "Context.Fill32"}[size], c.on(func() error { return submit(r.Bytes / size) }, writing(r)))
}

// AllocZeroed allocates a buffer and submits a fill that sets it to zero: in a capture, at each launch of the graph. It returns
// the errors of Alloc and Fill8, and a *vram.CaptureError if a capture of the stream begins or ends between the two.
func (c *Context) AllocZeroed(bytes int64) (Buffer, error) {
	if !c.opened() {
		return Buffer{}, ErrNotOpen
	}
	held := c.capture.Load()
	b, err := c.allocFor(held, bytes)
	if err != nil {
		return Buffer{}, err
	}
	return c.zeroed(held, b)
}

// zeroed submits a fill of a new buffer for the capture that has its memory, or for nil, and frees the buffer after an error.
func (c *Context) zeroed(held *capture, b Buffer) (_ Buffer, err error) {
	filled := false
	defer func() {
		if !filled { // also after a panic of the driver
			err = errors.Join(err, b.Free())
		}
	}()
	if err = c.fill8(held, Whole(b), 0); err != nil {
		return Buffer{}, err
	}
	filled = true
	return b, nil
}

// check returns the error of work on a range of a buffer of the context's device. plain says that the work needs no order: see
// streams.Submitter.Check.
func (c *Context) check(r Range, writes bool) (plain bool, err error) {
	if plain, err = c.work.Check(r.Buffer, writes); err != nil {
		return false, err
	}
	if err = within(r.Buffer, r.Offset, r.Bytes); err != nil {
		return false, err
	}
	return plain, nil
}
