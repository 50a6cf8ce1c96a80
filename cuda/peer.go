package cuda

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// ErrSameDevice refuses a copy between two devices whose contexts are of one: Context.Copy and Buffer.Transfer are for that.
var ErrSameDevice = errors.New("cuda: both contexts are of one device")

// OrderError reports that a copy between two devices was submitted, but that the source's stream could not be made to wait for it.
type OrderError = streams.OrderError

// CopyPeer submits a copy from a buffer of another device, for which a context of that device stands, to one of this device. It
// needs no access of one device to the other's memory: without it the driver copies through the host. It does not wait.
//
// The copy is queued on this context's stream, behind what was submitted so far to both contexts, to the streams of both buffers,
// and by others on those buffers. What is submitted to the other context later is behind the copy: so the source may be freed once
// CopyPeer has returned, whichever stream of its device it belongs to. That costs two events. Where the stream that has the source is to
// go on with other work before the copy, the other context is one of another stream of its device. Both devices are of one driver.
//
// Errors, with which nothing was submitted: ErrNotOpen, ErrSameDevice, ErrNotLive, ErrForeign for a buffer of neither context's
// device, *LengthError, *RangeError, *vram.CaptureError, vram.ErrClosed, and the driver's, as cudadrv.NotSupported. With an *OrderError
// the copy was submitted.
func (c *Context) CopyPeer(dst Range, from *Context, src Range) error {
	if err := c.copyable(from); err != nil {
		return err
	}
	if dst.Bytes != src.Bytes {
		return &LengthError{dst.Bytes, src.Bytes}
	}
	// Both are looked at before anything is submitted.
	ownTo, err := c.check(dst)
	if err != nil {
		return named("Context.CopyPeer", err)
	}
	ownFrom, err := from.check(src)
	if err != nil || src.Bytes == 0 {
		return named("Context.CopyPeer", err)
	}
	here, there := c.work.Crossing(), from.work.Crossing()
	defer here.Leave()
	defer there.Leave()
	if !ownTo {
		if err := here.Before(dst.Buffer); err != nil {
			return err
		}
	}
	if !ownFrom {
		if err := there.Before(src.Buffer); err != nil {
			return err
		}
	}
	err = c.work.Between(from.work, func() error {
		return c.peers.MemcpyPeerAsync(dst.ptr(), c.peers.Context(), src.ptr(), from.peers.Context(), src.Bytes, c.handle)
	})
	var late *OrderError
	if err == nil || errors.As(err, &late) { // it was submitted
		here.After()
		there.After()
	}
	return err
}

// TransferPeer hands a buffer over to this device from another one, for which a context of that device stands: it allocates as much
// here, copies, frees the other buffer behind the copy, and returns the new one. It does not wait for the copy. After an error the
// buffer is as it was, and nothing is left here. Errors: those of Alloc, CopyPeer and Buffer.Free.
func (c *Context) TransferPeer(from *Context, b Buffer) (to Buffer, err error) {
	if err := c.copyable(from); err != nil {
		return Buffer{}, err
	}
	if _, err := from.check(Whole(b)); err != nil {
		return Buffer{}, err
	}
	to, err = c.Stream().Alloc(b.Bytes())
	if err != nil {
		return Buffer{}, err
	}
	handedOver := false
	defer func() {
		if !handedOver { // also after a panic of the driver
			err = errors.Join(err, to.Free())
			to = Buffer{}
		}
	}()
	if err = c.CopyPeer(Whole(to), from, Whole(b)); err == nil {
		err = b.Free()
	}
	handedOver = err == nil
	return to, err
}

// copyable returns the error of copies from another context that cannot be made.
func (c *Context) copyable(from *Context) error {
	switch {
	case !c.opened():
		return ErrNotOpen
	case !from.opened():
		return notOpen("from")
	case c.work.SameDevice(from.work):
		return ErrSameDevice
	case !c.reaches() || !from.reaches():
		return unsupported("cuMemcpyPeerAsync")
	}
	return nil
}

// reaches reports whether the device takes part in copies between devices.
func (c *Context) reaches() bool {
	return c.peers != nil && c.Info().Capabilities.Has(cudadrv.PeerAccess)
}

// check returns the error of work on a range of a buffer of the context's device. own says that the work needs no order behind that of
// other streams: see streams.Submitter.Check.
func (c *Context) check(r Range) (own bool, err error) {
	if own, err = c.work.Check(r.Buffer); err != nil {
		return false, err
	}
	return own, within(r.Buffer, r.Offset, r.Bytes)
}
