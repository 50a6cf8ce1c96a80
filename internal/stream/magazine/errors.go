package magazine

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/jsonform"
)

// The errors of a free.
var (
	// ErrBadFree is the kind of every refused free: errors.Is holds for all of the following.
	ErrBadFree = errors.New("vram: free of a buffer that is not live")
	// ErrDoubleFree says that the buffer was freed before, and that no later owner has freed its memory
	// since.
	ErrDoubleFree = fmt.Errorf("%w: it was freed before", ErrBadFree)
	// ErrStale says that the buffer was freed, and its memory handed out and freed again since.
	ErrStale = fmt.Errorf("%w: its memory was handed out since", ErrBadFree)
	// ErrTransferred says that the buffer was handed over: its memory is live, under the new owner's handle.
	ErrTransferred = fmt.Errorf("%w: it was handed over to another stream", ErrBadFree)
	// ErrClosed is the kind of every *ClosedError.
	ErrClosed = errors.New("vram: closed")
)

// ClosedError refuses a call on a closed stream or device.
type ClosedError struct {
	Stream uint32 `json:"stream"` // ID; 0: the device was closed
}

// Error names the closed object.
func (e *ClosedError) Error() string {
	if e.Stream == 0 {
		return "vram: the device is closed"
	}
	return fmt.Sprintf("vram: stream %d is closed", e.Stream)
}

// Is makes errors.Is(err, ErrClosed) hold.
func (e *ClosedError) Is(target error) bool { return target == ErrClosed }

// The errors of uses.
var (
	// ErrUseOver says that a use had ended before.
	ErrUseOver = errors.New("vram: the use is over")
	// ErrMoves says that a buffer was handed over too often.
	ErrMoves = errors.New("vram: a buffer can be handed over 255 times")
)

// FreeError is the refusal of a free whose buffer's places are known.
type FreeError struct {
	Err       error      // ErrDoubleFree or ErrStale
	Allocated site.Stack // where the buffer was allocated
	Freed     site.Stack // where it was freed; unknown during that free, and unless everything is sampled
}

// Error names both places.
func (e *FreeError) Error() string {
	return fmt.Sprintf("%v; allocated at %v, freed at %v", e.Err, e.Allocated, e.Freed)
}

// Unwrap returns ErrDoubleFree or ErrStale.
func (e *FreeError) Unwrap() error { return e.Err }

// MarshalJSON implements json.Marshaler: the error is its text.
func (e *FreeError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Err       any        `json:"err"`
		Allocated site.Stack `json:"allocated"`
		Freed     site.Stack `json:"freed"`
	}{jsonform.Error(e.Err), e.Allocated, e.Freed})
}
