package sleep

import (
	"fmt"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/streams"
)

var (
	// ErrAsleep refuses work on a buffer of an arena that sleeps, and allocations from it.
	ErrAsleep = streams.ErrAsleep
	// ErrClosed refuses calls of an arena that was closed.
	ErrClosed = streams.ErrClosed
	// ErrNotOpen refuses a call of a nil or zero Arena or Context.
	ErrNotOpen = streams.ErrNotOpen
	// ErrNilContext refuses a nil context.Context.
	ErrNilContext = futures.ErrNilContext
)

// Error is a call of an arena that failed.
type Error struct {
	Doing string // "saving contents"
	State State  // of the arena after it
	Err   error
}

// Error includes the operation, the state and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("sleep: %s: %v; the arena is %v", e.Doing, e.Err, e.State)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// ContentsError refuses a value that is none of Contents.
type ContentsError struct{ Contents Contents }

// Error includes the value.
func (e *ContentsError) Error() string {
	return fmt.Sprintf("sleep: contents are saved (1) or dropped (2), not %d", e.Contents)
}
