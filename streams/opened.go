package streams

import (
	"context"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
)

// opened reports whether it is one that Open made: neither nil nor the zero Stream.
func (s *Stream) opened() bool { return s != nil && s.ref != nil }

// callable says why a call cannot be made: ErrNotOpen, ErrNilContext.
func (s *Stream) callable(ctx context.Context) error {
	if !s.opened() {
		return ErrNotOpen
	}
	if ctx == nil {
		return futures.ErrNilContext
	}
	return nil
}

// ID is the number by which reports name the stream, from 1 on. 0 of a nil or zero Stream.
func (s *Stream) ID() uint32 {
	if s == nil {
		return 0
	}
	return uint32(s.id)
}

// Handle is the CUDA stream, as long as the stream is open: Close destroys one that was not adopted. It is 0, the legacy default
// stream, of a nil or zero Stream.
func (s *Stream) Handle() cudadrv.Stream {
	if s == nil {
		return 0
	}
	return s.handle
}

// Closed reports whether Close has returned without an error that kept the stream open.
func (s *Stream) Closed() bool {
	if !s.opened() {
		return false
	}
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Gone reports whether the stream was closed and its last buffer freed. A stream that was quarantined is
// never gone: its memory is still there.
func (s *Stream) Gone() bool {
	if !s.opened() {
		return false
	}
	select {
	case <-s.ref.Done():
		return s.synced.Load()
	default:
		return false
	}
}
