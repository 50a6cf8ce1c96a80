package streams

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/units"
)

// NotLiveError refuses a call on a buffer that was freed or handed over, or on the zero Buffer. It is ErrNotLive.
type NotLiveError struct {
	Call  string `json:"call"`  // as "Buffer.Use"; "" in an error that names it
	Bytes int64  `json:"bytes"` // the requested size of the buffer; 0 of the zero Buffer, and of a Use
	Zero  bool   `json:"zero"`  // it is the zero Buffer, which nobody has allocated
}

// Error names the call and the buffer.
func (e *NotLiveError) Error() string {
	text := ErrNotLive.Error() + ": "
	if e.Call != "" {
		text += e.Call + " of "
	}
	switch {
	case e.Zero:
		return text + "a buffer that nobody has allocated"
	case e.Bytes > 0:
		return fmt.Sprintf("%sa buffer of %s, which was freed or handed over", text, units.Bytes(e.Bytes))
	}
	return text + "a buffer that was freed or handed over"
}

// Is reports whether the target is ErrNotLive.
func (e *NotLiveError) Is(target error) bool { return target == ErrNotLive }

// notLive returns the refusal of a call on the buffer.
func (b Buffer) notLive(call string) error {
	return &NotLiveError{Call: call, Bytes: b.bytes, Zero: b.slot == nil}
}

// useError turns a magazine's error about a buffer into this package's.
func (b Buffer) useError(call string, err error) error {
	if errors.Is(err, magazine.ErrStale) {
		return b.notLive(call)
	}
	return err
}
