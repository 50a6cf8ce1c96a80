package streams

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool"
)

// The errors of frees; see the package magazine.
var (
	ErrBadFree    = magazine.ErrBadFree
	ErrDoubleFree = magazine.ErrDoubleFree
	ErrStale      = magazine.ErrStale
	ErrClosed     = magazine.ErrClosed
)

var (
	// ErrTooLarge is the kind of every *SizeError: waiting would not help.
	ErrTooLarge = errors.New("vram: request larger than the limit")
	// ErrNegative refuses a negative size.
	ErrNegative = pool.ErrNegative
	// ErrQuarantined reports that the stream's books did not balance after a panic.
	ErrQuarantined = errors.New("vram: stream quarantined")
	// ErrNotOpen refuses a call on a nil or zero Stream, Tenant or Reservation.
	ErrNotOpen = pool.ErrNotOpen
)

var (
	// ErrNotLive refuses to announce a use of a buffer that was freed or handed over.
	// It is the kind of every *NotLiveError.
	ErrNotLive = errors.New("vram: the buffer is not live")
	// ErrForeign refuses a stream of another device than the buffer's, and a tenant or a
	// reservation of another device than the stream's.
	ErrForeign = pool.ErrForeign
	// ErrUseOver reports that a use has ended already.
	ErrUseOver = magazine.ErrUseOver
	// ErrTransferred reports that a buffer was handed over: only the buffer that Transfer returned
	// is valid.
	ErrTransferred = magazine.ErrTransferred
	// ErrTransferLimit reports that a buffer was handed over 255 times, the limit.
	ErrTransferLimit = magazine.ErrMoves
)

// ClosedError refuses a call on a stream or a device that was closed.
type ClosedError = magazine.ClosedError

// FreeError is the refusal of a free whose buffer's places are known.
type FreeError = magazine.FreeError

// AlignError refuses an alignment.
type AlignError struct {
	Align      int64 `json:"align"`
	LimitBytes int64 `json:"limit_bytes"`
}

// Error names the value and the valid ones.
func (e *AlignError) Error() string {
	return fmt.Sprintf("vram: Align is %d, want 0 or a power of two up to the limit of %d bytes", e.Align, e.LimitBytes)
}

// BatchError names the first element of a batch that was refused. If the whole batch was refused
// for lack of memory, the error is an allocation's instead.
type BatchError struct {
	Index int   `json:"index"` // of the first element that was refused
	Count int   `json:"count"` // of refused elements
	Err   error `json:"err"`
}

// Error names the element.
func (e *BatchError) Error() string {
	if e.Count > 1 {
		return fmt.Sprintf("vram: element %d of the batch and %s: %s", e.Index, units.Count(e.Count-1, "other"), reason(e.Err))
	}
	return fmt.Sprintf("vram: element %d of the batch: %s", e.Index, reason(e.Err))
}

// Unwrap returns the error of the first element that was refused.
func (e *BatchError) Unwrap() error { return e.Err }

// reason returns an error's text without the name of the module before it.
func reason(err error) string { return strings.TrimPrefix(fmt.Sprint(err), "vram: ") }

// LengthError refuses a batch whose slices do not match.
type LengthError struct {
	Buffers int `json:"buffers"`
	Sizes   int `json:"sizes"`
}

// Error names both lengths.
func (e *LengthError) Error() string {
	return fmt.Sprintf("vram: a batch of %s for %s, want the same number", units.Count(e.Sizes, "size"), units.Count(e.Buffers, "buffer"))
}

// SizeError refuses a request that could not be served even without any live buffer.
type SizeError struct {
	RequestedBytes int64 `json:"requested_bytes"`
	LimitBytes     int64 `json:"limit_bytes"`
	// the variable or the file that sets the limit; "": the device's memory, or the program
	LimitSource string `json:"limit_source"`
}

// Error names both sizes, and the source of the limit.
func (e *SizeError) Error() string {
	text := fmt.Sprintf("vram: requested %s, more than the whole limit of %s", units.AtLeast(e.RequestedBytes), units.Bytes(e.LimitBytes))
	if e.LimitSource != "" {
		text += " (" + e.LimitSource + ")"
	}
	return text
}

// Is makes errors.Is(err, ErrTooLarge) hold.
func (e *SizeError) Is(target error) bool { return target == ErrTooLarge }

// ErrCapturing is the kind of every *CaptureError, and is one itself.
var ErrCapturing error = &CaptureError{}

// ErrBusy says why a capture could not begin: a driver call on its stream has not ended.
var ErrBusy = errors.New("vram: a call on the stream has not ended for ten seconds")

// CaptureError refuses a call that would become part of the graph that a stream is being captured
// into, or end the capture. Err is the failure of continuing without it, if any: a
// *pool.OutOfMemoryError where returned memory stayed with the stream for lack of a fence. For a
// capture that cannot begin, Err is ErrBusy.
type CaptureError struct {
	Stream uint32 `json:"stream"`
	Call   string `json:"call"` // CUDA's function
	Err    error  `json:"err"`
}

// Error names the stream, the call, and a remedy.
func (e *CaptureError) Error() string {
	if e.Stream == 0 {
		return "vram: the stream is being captured"
	}
	if errors.Is(e.Err, ErrBusy) {
		return fmt.Sprintf("vram: no capture of stream %d: %s", e.Stream, reason(e.Err))
	}
	text := fmt.Sprintf("vram: stream %d is being captured, and %s may not be part of it: call before the capture begins "+
		"or after it has ended, or on another stream", e.Stream, e.Call)
	if e.Err != nil {
		text += ": " + reason(e.Err)
	}
	return text
}

// Is makes errors.Is(err, ErrCapturing) hold.
func (e *CaptureError) Is(target error) bool { return target == ErrCapturing }

// Unwrap returns Err.
func (e *CaptureError) Unwrap() error { return e.Err }

// ErrStranded is the kind of every *StrandedError.
var ErrStranded = errors.New("vram: the stream's work waits for an event that does not come")

// StrandedError says that a stream has not finished, and that no call waits for it: its work waits for an event of another
// process, which died before it reached the event. Memory that the work may touch is released with this process.
type StrandedError struct {
	Stream uint32 `json:"stream"`
}

// Error names the stream and a remedy.
func (e *StrandedError) Error() string {
	return fmt.Sprintf("vram: stream %d has work that waits for an event of a process that died: its memory is released "+
		"when this process ends", e.Stream)
}

// Is makes errors.Is(err, ErrStranded) hold.
func (e *StrandedError) Is(target error) bool { return target == ErrStranded }
