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
// the stream's is under way may find the call in the graph: whoever records a fence asks once more behind it, so that no
// question about a captured one, and no wait for it, ends the capture or draws another stream into it.
func (s *Stream) uncaptured(call string) error {
	if s.captures == nil {
		return nil
	}
	var status cudadrv.CaptureStatus
	err := s.guard(func() (err error) {
		status, err = s.captures.StreamIsCapturing(s.handle)
		return err
	})
	// Where the question itself fails the call will say why.
	captured := err == nil && status != cudadrv.CaptureNone || errors.Is(err, cudadrv.CaptureImplicit)
	if !captured {
		return nil
	}
	s.forbade.Add(1)
	return &CaptureError{Stream: s.ID(), Call: call}
}

// capturesOf is how a device tells of captures; nil where it cannot.
func capturesOf(d cudadrv.Device) cudadrv.CaptureQueries {
	if q, ok := d.(cudadrv.CaptureQueries); ok && d.Info().Capabilities.Has(cudadrv.CaptureInformation) {
		return q
	}
	return nil
}

// begun is how many calls captures had forbidden on a stream when a claim began.
type begun struct{ forbade uint64 }

func (b begun) forbidden() uint64 { return b.forbade }

// beginning is for a claim that begins now.
func (s *Stream) beginning() begun { return begun{s.forbade.Load()} }

// shortage is the error of a claim that the pool refused: if a capture has forbidden a call on the stream since the claim
// began, that may be the reason.
func (s *Stream) shortage(c claim, err error) error {
	if s.forbade.Load() != c.forbidden() {
		return &CaptureError{Stream: s.ID(), Call: "cuEventRecord", Err: err}
	}
	return err
}
