package streams

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv"
)

// CaptureError refuses what would become part of the graph that a stream is being captured into, or end the capture.
// Err is what came of going on without it, if anything: a *pool.OutOfMemoryError where memory that the stream has given
// back could not be had for want of a fence.
type CaptureError struct {
	Stream uint32
	Call   string // CUDA's function
	Err    error
}

// Error names the stream and the call, and what to do.
func (e *CaptureError) Error() string {
	text := fmt.Sprintf("vram: stream %d is being captured, and %s may not be part of it: allocate before the capture begins, "+
		"or on another stream, and close after it has ended", e.Stream, e.Call)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap is Err.
func (e *CaptureError) Unwrap() error { return e.Err }

// uncaptured is nil if a call may be made on the stream's handle, and a *CaptureError if the stream is being captured. Every
// call on the handle asks before; allocations and frees that make none do not. Who begins a capture while a request of
// the stream's is under way may find the call in the graph.
func (s *Stream) uncaptured(call string) error {
	if s.captures == nil {
		return nil
	}
	var status cudadrv.CaptureStatus
	err := guard(func() (err error) {
		status, err = s.captures.StreamIsCapturing(s.handle)
		return err
	})
	// Where the question itself fails the call will say why.
	captured := err == nil && status != cudadrv.CaptureNone || errors.Is(err, cudadrv.CaptureImplicit)
	s.captured.Store(captured)
	if !captured {
		return nil
	}
	return &CaptureError{Stream: s.ID(), Call: call}
}

// capturesOf is how a device tells of captures; nil where it cannot.
func capturesOf(d cudadrv.Device) cudadrv.CaptureQueries {
	if q, ok := d.(cudadrv.CaptureQueries); ok && d.Info().Capabilities.Has(cudadrv.CaptureInformation) {
		return q
	}
	return nil
}

// shortage is the error of a request that the pool refused: what the stream's last call found may be the reason.
func (s *Stream) shortage(err error) error {
	if s.captured.Load() {
		return &CaptureError{Stream: s.ID(), Call: "cuEventRecord", Err: err}
	}
	return err
}
