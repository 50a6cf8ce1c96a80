package vram

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// The handles that name a context's own streams.
const (
	legacyStream    StreamHandle = 1 // CU_STREAM_LEGACY, as 0
	perThreadStream StreamHandle = 2 // CU_STREAM_PER_THREAD
)

// HandleError refuses to adopt a stream handle.
type HandleError struct {
	Handle StreamHandle
	Stream uint32 // the stream that has the handle already; 0: none has
	Want   string // handles that can be adopted instead
}

// Error names the handle, and those that can be adopted.
func (e *HandleError) Error() string {
	text := fmt.Sprintf("vram: handle %#x", uint64(e.Handle))
	if e.Stream != 0 {
		text += fmt.Sprintf(" is stream %d's already", e.Stream)
	}
	return text + ": want " + e.Want
}

// CaptureError refuses a request that would need a driver call on a stream that is being captured
// into a graph.
type CaptureError = streams.CaptureError

var (
	// ErrCapturing is the kind of every *CaptureError.
	ErrCapturing = streams.ErrCapturing
	// ErrBusy says, within a *CaptureError, that a capture could not begin since a call on its
	// stream has not ended for ten seconds.
	ErrBusy = streams.ErrBusy
)

// AdoptStream makes a cache for a CUDA stream that the caller has created. The caller keeps the
// CUDA stream, and destroys it only after Stream.Close. A handle has one cache at a time. After
// Close it can be adopted again, also where the driver has given the same handle to a new stream.
// The handles 0 and 1 are the legacy default stream: its fences wait for the work of all blocking
// streams, so its memory comes back later than others'. Handle 2, the default stream of a thread,
// is refused: goroutines move between threads, and their work would go to different streams.
//
// The device calls the driver with an adopted handle only inside requests of its callers, so that a
// program may destroy or capture its stream at any other time. That has a price: memory that an
// adopted stream has freed serves other streams only from the next request on that stream, or a
// Stream.Trim, which record the fence for it.
//
// A stream that is being captured into a graph may be adopted. Until the capture ends, its requests
// are served where that takes no call on the stream, and fail with a *CaptureError where it does.
// Memory that is freed meanwhile can be allocated again on the same stream at once, and on others
// once the capture has ended and a fence was recorded. Buffers that a graph uses must stay
// allocated as long as the graph is launched. Capture in the relaxed mode: in the others CUDA
// forbids, to other threads as well, calls that allocations make, and goroutines have no thread of
// their own. Package cuda announces the captures that it begins, and they may begin at any time. A
// program begins one itself while none of its calls on the stream is in progress, nor one on a buffer
// of the stream: such a call may be refused with a *CaptureError, or end the capture.
//
// Errors: *HandleError, those of NewStream, and the driver's for a handle that was destroyed, as
// far as it can tell.
func (d *Device) AdoptStream(h StreamHandle) (*Stream, error) {
	if h == perThreadStream {
		return nil, &HandleError{Handle: h, Want: "a stream of NewStream, or one that the program created: " +
			"the default stream of a thread is another one on each thread that a goroutine runs on"}
	}
	e, err := d.use()
	if err != nil {
		return nil, err
	}
	if !d.creations.enter() {
		return nil, deviceClosed()
	}
	defer d.creations.leave()
	if err := d.free(h); err != nil {
		return nil, err
	}
	if err := exists(e.meter, h); err != nil {
		return nil, failed(fmt.Sprintf("adopting handle %#x", uint64(h)), err)
	}
	return d.open(e, h, true)
}

// free is nil if no open stream has the handle.
func (d *Device) free(h StreamHandle) error { return d.streams.Load().free(h) }

func (r *registry) free(h StreamHandle) error {
	for _, s := range r.open {
		if sameStream(s.Handle(), h) && !s.Closed() {
			return &HandleError{Handle: h, Stream: s.ID(), Want: "that stream, or to close it before"}
		}
	}
	return nil
}

// sameStream reports whether two handles name one stream.
func sameStream(a, b StreamHandle) bool {
	return a == b || a <= legacyStream && b <= legacyStream
}

// exists queries the driver about a handle, by a call that does no harm to a capture where there is
// one.
func exists(dev cudadrv.Device, h StreamHandle) error {
	if q, ok := dev.(cudadrv.CaptureQueries); ok && dev.Info().Capabilities.Has(cudadrv.CaptureInformation) {
		_, err := q.StreamIsCapturing(h)
		if errors.Is(err, cudadrv.CaptureImplicit) { // a blocking stream is being captured: the default stream is there
			return nil
		}
		return err
	}
	_, err := dev.StreamQuery(h)
	return err
}
