package streams

import (
	"sync/atomic"
	"weak"
)

// Tail is the end of a stream's work, for packages that wait for it some day. It does not keep a stream that was closed, unless its work
// has not finished.
type Tail struct {
	stream weak.Pointer[Stream]
	kept   atomic.Pointer[Stream] // a stream that was closed and has not finished
}

// Tail is the stream's: each call returns the same.
func (x Submitter) Tail() *Tail { return x.s.tail }

// Stream is the stream, or nil: then it was closed, and its work has finished.
func (t *Tail) Stream() *Stream { return t.stream.Value() }

// Finished reports whether the stream was closed, and its work has finished.
func (t *Tail) Finished() bool {
	s := t.stream.Value()
	return s == nil || s.cuda.line.Finished()
}
