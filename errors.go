package vram

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// The errors of this package and those below it, to be tested with errors.Is.
var (
	// ErrNoDriver says that no usable GPU driver was found.
	ErrNoDriver = cudadrv.ErrNoDriver
	// ErrNoDevice says that the driver has no device with the wanted ordinal.
	ErrNoDevice = cudadrv.ErrNoDevice
	// ErrOutOfMemory is the kind of every *OutOfMemoryError.
	ErrOutOfMemory = pool.ErrOutOfMemory
	// ErrWouldDeadlock is the kind of every *DeadlockError.
	ErrWouldDeadlock = pool.ErrWouldDeadlock
	// ErrQuota is the kind of every *QuotaError.
	ErrQuota = pool.ErrQuota
	// ErrTooLarge says that a request exceeds the limit of the device: no waiting would help.
	ErrTooLarge = streams.ErrTooLarge
	// ErrNegative refuses a negative size.
	ErrNegative = streams.ErrNegative
	// ErrBadFree is the kind of both refusals of a free.
	ErrBadFree = streams.ErrBadFree
	// ErrDoubleFree says that the buffer was freed before.
	ErrDoubleFree = streams.ErrDoubleFree
	// ErrStale says that the buffer was freed, and its memory handed out and freed again since.
	ErrStale = streams.ErrStale
	// ErrTransferred says that a buffer was handed over to another stream: its memory belongs to whoever has the new one.
	ErrTransferred = streams.ErrTransferred
	// ErrTransferLimit says that a buffer was handed over too often.
	ErrTransferLimit = streams.ErrTransferLimit
	// ErrNotLive refuses to announce a use of a buffer that was freed or handed over.
	ErrNotLive = streams.ErrNotLive
	// ErrForeign refuses a stream, a tenant or a reservation of another device.
	ErrForeign = streams.ErrForeign
	// ErrUseOver says that a use was ended before.
	ErrUseOver = streams.ErrUseOver
	// ErrClosed says that the stream or the device was closed.
	ErrClosed = streams.ErrClosed
	// ErrNotOpen refuses a call on a nil or zero Device, Stream, Lane, Tenant or Reservation.
	ErrNotOpen = cudadrv.ErrNotOpen
	// ErrNilContext refuses a nil context.
	ErrNilContext = futures.ErrNilContext
	// ErrQuarantined says that a stream's books did not balance after a panic.
	ErrQuarantined = streams.ErrQuarantined
	// ErrCanceled is the answer of a request that its caller cancelled.
	ErrCanceled = futures.ErrCanceled
)

// OutOfMemoryError says what was asked, what is free, who holds what, and what would help.
type OutOfMemoryError = pool.OutOfMemoryError

// LimitError says that memory cannot be mapped ahead, since the limit leaves no room: the cause of what Device.Warm says.
type LimitError = pool.LimitError

// Remedy is one thing that would help a request that was refused, as OutOfMemoryError.Remedies has them.
type Remedy = pool.Remedy

// RemedyKind is what may be done where memory is short.
type RemedyKind = pool.RemedyKind

// The remedies: see pool.RemedyKind for what their Bytes are.
const (
	RemedyRaiseLimit         = pool.RaiseLimit
	RemedyFreeElsewhere      = pool.FreeElsewhere
	RemedyAwaitFences        = pool.AwaitFences
	RemedyCoalesce           = pool.Coalesce
	RemedyReturnStream       = pool.ReturnStream
	RemedyCloseLanes         = pool.CloseLanes
	RemedyReleaseReservation = pool.ReleaseReservation
	RemedyWaitForFrees       = pool.WaitForFrees
)

// DeadlockError refuses a request with Wait where nobody who holds memory goes on.
type DeadlockError = pool.DeadlockError

// WaitError ends a request with Wait by the end of its context, and says who holds what it waited for.
type WaitError = pool.WaitError

// Holder is a stream or a tenant that holds memory, in a DeadlockError or a WaitError.
type Holder = pool.Holder

// QuotaError refuses a request of a tenant that its quota does not allow.
type QuotaError = pool.QuotaError

// Waiter is a request that waits, in a DeadlockError.
type Waiter = pool.Waiter

// SizeError refuses a request that could not be served even if nothing else lived.
type SizeError = streams.SizeError

// BudgetError refuses a lane whose budget is negative.
type BudgetError = streams.BudgetError

// AlignError refuses an alignment.
type AlignError = streams.AlignError

// FreeError is the refusal of a free whose buffer's places are known: see Config.Debug. It is ErrDoubleFree or ErrStale.
type FreeError = streams.FreeError

// BatchError says which part of a batch could not be done.
type BatchError = streams.BatchError

// LengthError refuses a batch whose slices do not match.
type LengthError = streams.LengthError

// contextError is an error with what was tried put before it. The prefix of this module stands once in its text.
type contextError struct {
	tried string
	err   error
}

// failed is the error of what was tried; tried may be empty.
func failed(tried string, err error) error { return &contextError{tried, err} }

// Error names what was tried, and why it failed.
func (e *contextError) Error() string {
	if e.tried == "" {
		return "vram: " + withoutPrefix(e.err)
	}
	return "vram: " + e.tried + ": " + withoutPrefix(e.err)
}

// Unwrap is why it failed.
func (e *contextError) Unwrap() error { return e.err }

// withoutPrefix is an error's text without the name of this module before it.
func withoutPrefix(err error) string { return strings.TrimPrefix(err.Error(), "vram: ") }

// ConfigError says which field of a Config cannot be.
type ConfigError struct {
	Field string
	Value any
	Want  string // what it may be
}

// Error names the field, its value and what it may be.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("vram: config: %s is %v, want %s", e.Field, e.Value, e.Want)
}

// InUseError says that buffers were still live when the device was closed. Their memory is gone; a later
// Free of one says ErrClosed.
type InUseError struct {
	BufferCount uint64
	Bytes       int64
	Buffers     []LiveBuffer // at most 1000 of them
}

// LiveBuffer is a buffer that was never freed.
type LiveBuffer struct {
	Stream uint32
	Ptr    Ptr
	Bytes  int64 // of its block
	Tag    string
	// Allocated is where it was allocated; unknown without Config.Debug and Config.Observer.
	Allocated site.Stack
}

// Error says how many there were, and the first.
func (e *InUseError) Error() string {
	text := fmt.Sprintf("vram: closed with %s of %s", units.Count(e.BufferCount, "live buffer"), units.Count(e.Bytes, "byte"))
	if len(e.Buffers) > 0 {
		b := e.Buffers[0]
		text += fmt.Sprintf(", the first at %#x on stream %d with %d bytes", uint64(b.Ptr), b.Stream, b.Bytes)
		if b.Tag != "" {
			text += fmt.Sprintf(" and tag %q", b.Tag)
		}
		if b.Allocated.Known() {
			text += fmt.Sprintf(", allocated at %v", b.Allocated)
		}
	}
	return text
}
