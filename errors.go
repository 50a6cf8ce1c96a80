package vram

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// The errors of this package and those below it, to be tested with errors.Is.
var (
	// ErrNoDriver reports that no usable GPU driver was found.
	ErrNoDriver = cudadrv.ErrNoDriver
	// ErrNoDevice reports that the driver has no device with the wanted ordinal.
	ErrNoDevice = cudadrv.ErrNoDevice
	// ErrOutOfMemory is the kind of every *OutOfMemoryError.
	ErrOutOfMemory = pool.ErrOutOfMemory
	// ErrWouldDeadlock is the kind of every *DeadlockError.
	ErrWouldDeadlock = pool.ErrWouldDeadlock
	// ErrQuota is the kind of every *QuotaError.
	ErrQuota = pool.ErrQuota
	// ErrTooLarge reports that a request exceeds the limit of the device: waiting would not help.
	ErrTooLarge = streams.ErrTooLarge
	// ErrNegative refuses a negative size.
	ErrNegative = streams.ErrNegative
	// ErrBadFree is the kind of every refusal of a free: ErrDoubleFree and ErrStale.
	ErrBadFree = streams.ErrBadFree
	// ErrDoubleFree reports that the buffer was freed before.
	ErrDoubleFree = streams.ErrDoubleFree
	// ErrStale reports that the buffer was freed before, and its memory has been reallocated since.
	ErrStale = streams.ErrStale
	// ErrTransferred reports that the buffer was handed to another stream by Transfer: only the
	// buffer that Transfer returned is valid.
	ErrTransferred = streams.ErrTransferred
	// ErrTransferLimit reports that a buffer was handed from stream to stream too often.
	ErrTransferLimit = streams.ErrTransferLimit
	// ErrNotLive refuses to announce a use of a buffer that was freed or transferred: it is the kind of every *NotLiveError.
	ErrNotLive = streams.ErrNotLive
	// ErrForeign refuses a stream, a tenant or a reservation of another device.
	ErrForeign = streams.ErrForeign
	// ErrUseOver reports that Done was called on a use that has ended already.
	ErrUseOver = streams.ErrUseOver
	// ErrClosed is the kind of every *ClosedError: the stream or the device was closed.
	ErrClosed = streams.ErrClosed
	// ErrNotOpen refuses a call on a nil or zero Device, Stream, Tenant or Reservation.
	ErrNotOpen = cudadrv.ErrNotOpen
	// ErrNilContext refuses a nil context.
	ErrNilContext = futures.ErrNilContext
	// ErrQuarantined reports that the stream's books did not balance after a panic: it serves no
	// more requests.
	ErrQuarantined = streams.ErrQuarantined
	// ErrDeviceFailed is the kind of every *FaultError and *DeviceFailedError.
	ErrDeviceFailed = streams.ErrDeviceFailed
	// ErrStranded is the kind of every *StrandedError: work waits for a process that died.
	ErrStranded = streams.ErrStranded
	// ErrCanceled is the answer of a request that was cancelled with Future.Cancel.
	ErrCanceled = futures.ErrCanceled
)

// OutOfMemoryError has the requested and the free bytes, the streams that hold memory, and
// remedies.
type OutOfMemoryError = pool.OutOfMemoryError

// LimitError reports that memory cannot be mapped ahead, since the limit leaves no room: it is the
// cause of an error of Device.Warm.
type LimitError = pool.LimitError

// DeadlockError refuses a request with Wait that would never be served: every stream or tenant that
// holds memory waits, too.
type DeadlockError = pool.DeadlockError

// WaitError is the answer of a request with Wait whose context has ended. It names the streams and
// tenants that hold memory.
type WaitError = pool.WaitError

// QuotaError refuses a request of a tenant that its quota does not allow.
type QuotaError = pool.QuotaError

// QuotaBoundsError refuses a Quota with a negative bound, or with a share above its limit.
type QuotaBoundsError = pool.QuotaBoundsError

// ClosedError refuses a call on a closed device or stream, and names which of them is closed.
type ClosedError = streams.ClosedError

// StrandedError reports a stream that never finishes, so that nobody waits for it: its work waits for an event of another
// process (cuda/share) that died before it recorded the event.
type StrandedError = streams.StrandedError

// FaultError says that work failed on the device, with the launches that can have failed. Its context is lost.
type FaultError = streams.FaultError

// DeviceFailedError is the error of a call on a device that failed before. It wraps the *FaultError.
type DeviceFailedError = streams.DeviceFailedError

// NotOpenError is the ErrNotOpen of a call's argument, and names both.
type NotOpenError = cudadrv.NotOpenError

// deviceClosed returns the error of a call on a closed device.
func deviceClosed() error { return &ClosedError{} }

// SizeError refuses a request that is larger than the limit of the device: it could not be served
// even without any live buffer.
type SizeError = streams.SizeError

// NotLiveError refuses a call on a buffer that was freed or transferred: it is ErrNotLive, and names the call and the buffer.
type NotLiveError = streams.NotLiveError

// AlignError refuses an alignment that is no power of two, or too large.
type AlignError = streams.AlignError

// FreeError refuses a free, and has the call stacks of the buffer's allocation and first free: see
// Config.Debug. It is ErrDoubleFree or ErrStale.
type FreeError = streams.FreeError

// BatchError names the buffer of a batch that could not be freed, or the size that was wrong.
type BatchError = streams.BatchError

// LengthError refuses a batch whose slices are of different lengths.
type LengthError = streams.LengthError

// contextError is an error with the failed operation before it. The prefix of this module stands
// once in its text.
type contextError struct {
	tried string
	err   error
}

// failed returns the error of an operation; its name may be empty.
func failed(tried string, err error) error { return &contextError{tried, err} }

// Error names the operation, and why it failed.
func (e *contextError) Error() string {
	if e.tried == "" {
		return "vram: " + withoutPrefix(e.err)
	}
	return "vram: " + e.tried + ": " + withoutPrefix(e.err)
}

// Unwrap returns the cause.
func (e *contextError) Unwrap() error { return e.err }

// withoutPrefix returns an error's text without the module's name.
func withoutPrefix(err error) string { return strings.TrimPrefix(err.Error(), "vram: ") }

// ConfigError refuses the value of a field of a Config, or of an argument of a call.
type ConfigError struct {
	Field string `json:"field"` // or argument
	Value any    `json:"value"`
	Want  string `json:"want"` // the values that it may have
	Call  string `json:"call"` // the function that has the argument; empty for a field of Config or Settings
}

// Error names the field or the argument, its value and the valid ones.
func (e *ConfigError) Error() string {
	where := "config"
	if e.Call != "" {
		where = e.Call
	}
	format := "vram: %s: %s is %v, want %s"
	if _, isText := e.Value.(string); isText {
		format = "vram: %s: %s is %q, want %s"
	}
	return fmt.Sprintf(format, where, e.Field, e.Value, e.Want)
}

// badField refuses the value of a field of Config or Settings.
func badField(field string, value any, want string) error {
	return &ConfigError{Field: field, Value: value, Want: want}
}

// badArgument refuses the value of an argument.
func badArgument(call, argument string, value any, want string) error {
	return &ConfigError{Field: argument, Value: value, Want: want, Call: call}
}

// InUseError reports that buffers were still live when the device was closed. Their memory is
// released; freeing one later returns ErrClosed.
type InUseError struct {
	BufferCount uint64            `json:"buffer_count"`
	Bytes       int64             `json:"bytes"`
	Buffers     []pool.LiveBuffer `json:"buffers"` // the largest first, at most 1000 of them
}

// placeless reports whether it is unknown of all buffers where they were allocated.
func (e *InUseError) placeless() bool {
	return !slices.ContainsFunc(e.Buffers, func(b pool.LiveBuffer) bool { return b.Allocated.Known() })
}

// Error prints the number of buffers, and the largest. Report prints more.
func (e *InUseError) Error() string {
	text := fmt.Sprintf("vram: closed with %s, %s in all", units.Count(e.BufferCount, "live buffer"), units.Bytes(e.Bytes))
	if len(e.Buffers) > 0 {
		if largest := &e.Buffers[0]; e.BufferCount > 1 {
			text += fmt.Sprintf(", the largest a %v; also %s of %s in all",
				*largest, units.Count(e.BufferCount-1, "buffer"), units.Bytes(e.Bytes-largest.Bytes))
		} else {
			text += ": a " + largest.String()
		}
		if e.placeless() {
			text += "; Config.SampleBytes names where large ones were allocated, Config.Debug where each was"
		}
	}
	return text
}

// Report has, in several lines, the buffers that were not freed: the sums by tenant, tag, stream and
// place, the largest first, with the age of the oldest, and the largest buffers.
func (e *InUseError) Report() string {
	if e == nil {
		return ""
	}
	list := inventory.Of(slices.Clone(e.Buffers))
	var b strings.Builder
	fmt.Fprintf(&b, "leak: %s not freed before the device was closed, %s in all\n", units.Count(e.BufferCount, "buffer"), units.Bytes(e.Bytes))
	if more := e.BufferCount - uint64(len(e.Buffers)); more > 0 {
		fmt.Fprintf(&b, "the sums are of the largest %d of them\n", len(e.Buffers))
	}
	inventory.WriteGroups(&b, list)
	inventory.WriteLargest(&b, list.Largest(inventory.MaxListed))
	if len(e.Buffers) > 0 && e.placeless() {
		b.WriteString("to see where they were allocated: set SampleBytes, also at run time, for the large ones at little cost; or open the device with Config.Debug, for each\n")
	}
	return b.String()
}

// CloseInto closes a device and joins its error to the returning function's error. It is for deferred
// calls, whose results are lost otherwise.
//
//	func run() (err error) {
//		dev, err := vram.Open(vram.Config{})
//		if err != nil {
//			return err
//		}
//		defer vram.CloseInto(&err, dev)
//		...
//	}
//
// Anything with a Close can be passed: streams, contexts of package cuda. A nil Closer is not closed, and a nil err gets no error.
func CloseInto(err *error, c io.Closer) {
	if c == nil {
		return
	}
	if failed := c.Close(); err != nil {
		*err = joined(*err, failed)
	}
}

// joined is errors.Join, except that it returns a single error unchanged: encoding/json writes the fields of that, and none of
// a joined one.
func joined(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
