package host

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/units"
)

// The errors of this package, to be tested with errors.Is. Those with the name of one of package
// vram are that one.
var (
	ErrNegative    = vram.ErrNegative
	ErrTooLarge    = vram.ErrTooLarge
	ErrOutOfMemory = vram.ErrOutOfMemory
	ErrBadFree     = vram.ErrBadFree
	ErrDoubleFree  = vram.ErrDoubleFree
	ErrStale       = vram.ErrStale
	ErrNotLive     = vram.ErrNotLive
	ErrNilContext  = vram.ErrNilContext
	// ErrForeign refuses a block of another allocator, such as a wrapper.
	ErrForeign = vram.ErrForeign
	// ErrClosed refuses a request of an allocator that was closed.
	ErrClosed = vram.ErrClosed
	// ErrLimit is the kind of every *LimitError.
	ErrLimit = errors.New("host: the limit is reached")
	// ErrLeak is the kind of every *LeakError.
	ErrLeak = errors.New("host: blocks are live")
)

// closed is the error of a request after Close.
func closed(k Kind) error { return fmt.Errorf("host: the allocator of %v memory: %w", k, ErrClosed) }

// goneError is a refused free that has ended the block all the same: its memory went with its device.
type goneError struct{ error }

func (e goneError) Unwrap() error { return e.error }

// ended reports whether a free that returned the error was the one that has ended the block.
func ended(err error) bool { return err == nil || errors.As(err, new(goneError)) }

// SizeError refuses a size that is negative, or too large for any allocator: it is ErrNegative or
// ErrTooLarge.
type SizeError struct {
	RequestedBytes int64
	LimitBytes     int64
}

// Error names both sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("host: requested %d bytes, want 0 to %s", e.RequestedBytes, units.Bytes(e.LimitBytes))
}

// Is tells negative sizes from large ones.
func (e *SizeError) Is(target error) bool {
	if e.RequestedBytes < 0 {
		return target == ErrNegative
	}
	return target == ErrTooLarge
}

// AlignError refuses an alignment.
type AlignError struct {
	Align int64
	Limit int64
}

// Error names the value and the valid ones.
func (e *AlignError) Error() string {
	return fmt.Sprintf("host: alignment of %d bytes, want 0 or a power of two up to %s", e.Align, units.Bytes(e.Limit))
}

// LimitError refuses a request that would exceed a bound of a Limit.
type LimitError struct {
	RequestedBytes int64
	LiveBytes      int64
	LiveBlocks     int64
	Bounds         Bounds
}

// Error names the bounds and the live blocks.
func (e *LimitError) Error() string {
	text := fmt.Sprintf("host: requested %s with %s of %s live, limit", units.AtLeast(e.RequestedBytes),
		units.Bytes(e.LiveBytes), units.Count(e.LiveBlocks, "block"))
	if e.Bounds.Bytes > 0 {
		text += " " + units.Bytes(e.Bounds.Bytes)
	}
	if e.Bounds.Blocks > 0 {
		text += " " + units.Count(e.Bounds.Blocks, "block")
	}
	return text
}

// Is makes errors.Is(err, ErrLimit) hold.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// LeakError is Close's report of blocks that were not freed.
type LeakError struct {
	Kind   Kind
	Blocks int64
	Bytes  int64
}

// Error names the number of blocks, their kind and their bytes.
func (e *LeakError) Error() string {
	return fmt.Sprintf("host: %s of %v memory not freed, %s", units.Count(e.Blocks, "block"), e.Kind, units.Bytes(e.Bytes))
}

// Is makes errors.Is(err, ErrLeak) hold.
func (e *LeakError) Is(target error) bool { return target == ErrLeak }

// leak is the error for live blocks, nil for none.
func leak(k Kind, s Stats) error {
	if s.LiveBlocks <= 0 {
		return nil
	}
	return &LeakError{Kind: k, Blocks: s.LiveBlocks, Bytes: s.LiveBytes}
}

// MemoryError refuses a request for page-locked memory for which the driver has none.
type MemoryError struct {
	RequestedBytes int64
	Err            error // the driver's
}

// Error names the size and the driver's error.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("host: no %s of page-locked memory: %v", units.AtLeast(e.RequestedBytes), e.Err)
}

// Unwrap is the driver's error.
func (e *MemoryError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrOutOfMemory) hold.
func (e *MemoryError) Is(target error) bool { return target == ErrOutOfMemory }

// UseError refuses to announce a use that this memory could not wait for.
type UseError struct {
	Stream cudadrv.Stream
	Kind   Kind
	Why    string
}

// Error names the stream and the reason.
func (e *UseError) Error() string {
	return fmt.Sprintf("host: use of %v memory on stream %#x: %s", e.Kind, uint64(e.Stream), e.Why)
}

// CaptureError refuses a free of a block that was announced to be used on a stream which is being
// captured into a graph. The block is live: free it when the capture has ended, and the last
// launch of the graph has been submitted.
type CaptureError struct {
	Stream cudadrv.Stream
	Err    error // the driver's, if it refused to tell; else nil
}

// Error names the stream.
func (e *CaptureError) Error() string {
	text := fmt.Sprintf("host: stream %#x is being captured: a free cannot wait for its work", uint64(e.Stream))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap is Err.
func (e *CaptureError) Unwrap() error { return e.Err }

// NameError refuses the name of an allocator.
type NameError struct {
	Name string
	Why  string
}

// Error names the name, the fault and the valid ones.
func (e *NameError) Error() string {
	return fmt.Sprintf("host: allocator %q: %s, want cpu, cuda:N or cuda:N/pinned", e.Name, e.Why)
}

// ConfigError refuses the value of a field of PoolConfig, Bounds or Options.
type ConfigError struct {
	Field string
	Value any
	Want  string
}

// Error names the field, its value and the valid ones.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("host: %s is %v, want %s", e.Field, e.Value, e.Want)
}

// CapabilityError refuses a device that has no page-locked memory.
type CapabilityError struct {
	Device string // its name
	Want   cudadrv.Capability
}

// Error names the device and the capability.
func (e *CapabilityError) Error() string {
	return fmt.Sprintf("host: %s has no page-locked memory (capability %v)", e.Device, e.Want)
}
