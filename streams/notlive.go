package streams

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/units"
)

// NotLiveError refuses a call on a buffer that was freed or handed over, or on the zero Buffer. It is ErrNotLive.
type NotLiveError struct {
	Call  string `json:"call"`  // as "Buffer.Use"; "" in an error that names it
	Bytes int64  `json:"bytes"` // the requested size of the buffer; 0 of the zero Buffer, and of a Use
	Zero  bool   `json:"zero"`  // it is the zero Buffer, which nobody has allocated

	Allocated site.Stack `json:"allocated"` // where the buffer was allocated, as in FreeError
	Freed     site.Stack `json:"freed"`     // where it was freed
}

// Error names the call and the buffer.
func (e *NotLiveError) Error() string {
	text := ErrNotLive.Error() + ": "
	if e.Call != "" {
		text += e.Call + " of "
	}
	if e.Zero {
		return text + "a buffer that nobody has allocated"
	}
	if e.Bytes > 0 {
		text += fmt.Sprintf("a buffer of %s, which was freed", units.Bytes(e.Bytes))
	} else {
		text += "a buffer that was freed"
	}
	if e.Freed.Known() {
		return text + fmt.Sprintf(" at %v; allocated at %v", e.Freed, e.Allocated)
	}
	return text + " or handed over"
}

// Is reports whether the target is ErrNotLive.
func (e *NotLiveError) Is(target error) bool { return target == ErrNotLive }

// notLive returns the refusal of a call on the buffer.
func (b Buffer) notLive(call string) error {
	e := &NotLiveError{Call: call, Bytes: b.bytes, Zero: b.slot == nil}
	if b.slot != nil {
		e.Allocated, e.Freed = b.slot.Places(b.word)
	}
	return e
}

// useError turns a magazine's error about a buffer into this package's.
func (b Buffer) useError(call string, err error) error {
	if errors.Is(err, magazine.ErrStale) {
		return b.notLive(call)
	}
	return err
}
