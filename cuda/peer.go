package cuda

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
)

// ErrSameDevice refuses a copy between two devices whose contexts are of one: Context.Copy and Buffer.Transfer are for that.
var ErrSameDevice = errors.New("cuda: both contexts are of one device")

// CopyPeer submits a copy from a buffer of another device, for which a context of that device stands, to one of this device. It
// needs no access of one device to the other's memory: without it the driver copies through the host. It does not wait.
//
// The copy runs on this context's stream. It waits for the work submitted so far to both contexts and to the streams of both
// buffers, and for work of others on those buffers. Later work of the other context waits for the copy: so the source may be
// freed once CopyPeer has returned, whichever stream of its device it belongs to. That costs two events. If the source's stream
// is to run other work before the copy, pass a context of another stream of its device. Both devices must belong to one driver.
//
// Errors, with which nothing was submitted: ErrNotOpen, ErrSameDevice, ErrNotLive, ErrForeign for a buffer of neither context's
// device, *LengthError, *RangeError, *vram.CaptureError, vram.ErrClosed, and the driver's, as cudadrv.NotSupported. With an
// *OrderError the copy was submitted.
func (c *Context) CopyPeer(dst Range, from *Context, src Range) error {
	if err := c.copyable(from); err != nil {
		return err
	}
	if dst.Bytes != src.Bytes {
		return &LengthError{dst.Bytes, src.Bytes}
	}
	// Both are checked before anything is submitted.
	if _, err := c.check(dst, true); err != nil {
		return named("Context.CopyPeer", err)
	}
	if _, err := from.check(src, false); err != nil || src.Bytes == 0 {
		return named("Context.CopyPeer", err)
	}
	crossing := c.work.Crossing()
	defer crossing.Leave()
	if err := crossing.Touch(dst.Buffer, true, 0); err != nil {
		return named("Context.CopyPeer", err)
	}
	if err := crossing.TouchFor(from.work, src.Buffer, false, 1); err != nil {
		return named("Context.CopyPeer", err)
	}
	if _, err := crossing.Begin(); err != nil {
		return named("Context.CopyPeer", ofBytes(err, dst.Buffer))
	}
	err := c.work.Between(from.work, func() error {
		return c.peers.MemcpyPeerAsync(dst.Ptr(), c.peers.Context(), src.Ptr(), from.peers.Context(), src.Bytes, c.handle)
	})
	if err == nil || submitted(err) {
		crossing.After()
	}
	return err
}

// TransferPeer moves a buffer to this device from the device of another context: it allocates a buffer here, copies, frees the
// other buffer after the copy, and returns the new one. It does not wait for the copy. After an error the buffer is unchanged,
// and nothing is left here. It returns the errors of Alloc, CopyPeer and Buffer.Free.
func (c *Context) TransferPeer(from *Context, b Buffer) (to Buffer, err error) {
	if err := c.copyable(from); err != nil {
		return Buffer{}, err
	}
	if _, err := from.check(Whole(b), false); err != nil {
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
