package streams

// Tail returns the stream's Tail: each call returns the same.
func (x Submitter) Tail() *Tail { return x.s.tail }

// Stream returns the stream, or nil if it was closed and its work has finished.
func (t *Tail) Stream() *Stream { return t.stream.Value() }

// Finished reports whether the stream was closed, and its work has finished.
func (t *Tail) Finished() bool {
	s := t.stream.Value()
	return s == nil || s.cuda.line.Finished()
}
