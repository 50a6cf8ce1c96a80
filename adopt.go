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

// HandleError says why a handle cannot be adopted.
type HandleError struct {
	Handle StreamHandle
	Stream uint32 // that has the handle already; 0: none has
	Want   string // what can be
}

// Error names the handle and what can be adopted.
func (e *HandleError) Error() string {
	text := fmt.Sprintf("vram: handle %#x", uint64(e.Handle))
	if e.Stream != 0 {
		text += fmt.Sprintf(" is stream %d's already", e.Stream)
	}
	return text + ": want " + e.Want
}

// CaptureError refuses what would become part of a graph that is being captured.
type CaptureError = streams.CaptureError

// AdoptStream makes a cache for a CUDA stream of the caller's, who destroys it after the cache's Close. A handle has one
// cache at a time: after Close it can be adopted again, also where it names another stream by then, which inherits
// nothing. 0 and 1 are the legacy default stream, whose fences cover the work of all blocking streams, too, so that its
// memory comes back later than that of others. The default stream of a thread (2) is refused: a goroutine moves from thread to
// thread, and what it submits there would go to different streams.
//
// On an adopted handle fences are recorded in its callers' requests only, so that a program which destroys its stream, or
// captures it, is not surprised by a call from the background. What such a stream keeps free therefore serves other
// streams as far as its callers' requests, or Stream.Return, left a fence over it.
//
// A stream that is being captured may be adopted. Until the capture has ended its requests are served as far as no call
// on the stream is needed for that; else they fail with a *CaptureError. Of what is freed meanwhile the stream itself may have
// the next use at once; others get it after the capture has ended and a fence was recorded. What a graph uses must stay allocated for
// as long as it is launched. Captures should be in the relaxed mode: others forbid calls that allocations make, also of
// threads that have nothing to do with the capture, where goroutines have no thread of their own.
//
// Errors: *HandleError; those of NewStream; and what the driver says to a handle that was destroyed, as far as it can
// tell.
func (d *Device) AdoptStream(h StreamHandle) (*Stream, error) {
	if h == perThreadStream {
		return nil, &HandleError{Handle: h, Want: "a stream of NewStream, or one that the program created: " +
			"the default stream of a thread is another one on each thread that a goroutine runs on"}
	}
	e, err := d.use()
	if err != nil {
		return nil, err
	}
	if !d.guests.enter() {
		return nil, ErrClosed
	}
	defer d.guests.leave()
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

// exists asks the driver about a handle, by a call that does no harm to a capture where there is one.
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
