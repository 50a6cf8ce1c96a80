package streams

import (
	"sync/atomic"
	"weak"
)

// Tail is the end of a stream's work, for packages that may wait for it later. It keeps a closed stream only
// while its work has not finished.
type Tail struct {
	stream weak.Pointer[Stream]
	kept   atomic.Pointer[Stream] // a stream that was closed and has not finished
}

// Tail returns the stream's Tail: each call returns the same.
func (x Submitter) Tail() *Tail { return x.s.tail }

// Stream returns the stream, or nil if it was closed and its work has finished.
func (t *Tail) Stream() *Stream { return t.stream.Value() }

// Finished reports whether the stream was closed, and its work has finished.
func (t *Tail) Finished() bool {
	s := t.stream.Value()
	return s == nil || s.cuda.line.Finished()
}
