package share

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/cudadrv"
)

var (
	// ErrClosed refuses a call of memory that was closed.
	ErrClosed = errors.New("share: the memory is closed")
	// ErrLinked refuses an Export of memory that has a peer, or had one.
	ErrLinked = errors.New("share: the memory is linked to a peer")
	// ErrNotLinked refuses a fence of memory that no peer has.
	ErrNotLinked = errors.New("share: the memory is not linked to a peer")
	// ErrPeerDied is the reason of a PeerError: the connection ended, and the peer had not closed the memory.
	ErrPeerDied = errors.New("share: the connection ended before the peer closed the memory")
	// ErrPeerClosed is the reason of a PeerError: the peer has closed the memory, and its work has finished.
	ErrPeerClosed = errors.New("share: the peer has closed the memory")
)

// PeerError is the loss of the peer. The memory stays mapped.
type PeerError struct {
	Op  string // "export", "import", "publish", "await" or "close"
	Err error  // wraps ErrPeerDied or ErrPeerClosed, or is a *ProtocolError
}

// Error includes the call and the reason.
func (e *PeerError) Error() string {
	return "share: " + e.Op + ": " + strings.TrimPrefix(fmt.Sprint(e.Err), "share: ")
}

// Unwrap returns the reason.
func (e *PeerError) Unwrap() error { return e.Err }

// ProtocolError refuses bytes from the peer that are not of this protocol.
type ProtocolError struct{ Detail string }

// Error includes the detail.
func (e *ProtocolError) Error() string { return "share: not this protocol: " + e.Detail }

// VersionError says that the peer speaks another version.
type VersionError struct{ Theirs, Ours uint32 }

// Error includes both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("share: the peer speaks version %d, not %d", e.Theirs, e.Ours)
}

// SizeError refuses a size that is not positive or exceeds the GPU's memory, or a peer's description of its memory whose parts
// are inconsistent or differ from the ones sent to it.
type SizeError struct {
	Bytes            int64 // of the memory
	RoundedBytes     int64 // of the handle
	GranularityBytes int64 // of the device here
	LimitBytes       int64 // of the GPU
}

// Error includes the sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("share: %d bytes in a handle of %d cannot be, with a granularity of %d and a GPU of %d",
		e.Bytes, e.RoundedBytes, e.GranularityBytes, e.LimitBytes)
}

// GPUError says that the peer's memory is on another GPU.
type GPUError struct{ Theirs, Ours cudadrv.UUID }

// Error names both.
func (e *GPUError) Error() string {
	return fmt.Sprintf("share: the peer is on %v, this context on %v", e.Theirs, e.Ours)
}

// DescriptorError refuses a message without a descriptor, or with more than one. Received ones are closed.
type DescriptorError struct{ Count int } // received ones: there may have been more

// Error includes the number.
func (e *DescriptorError) Error() string {
	return fmt.Sprintf("share: %d file descriptors came with the header, not 1", e.Count)
}

// Refusal is why a peer did not take part.
type Refusal uint32

// The refusals. Others are of later versions.
const (
	RefusedVersion    Refusal = 1 + iota // it speaks another version
	RefusedSize                          // the sizes cannot be
	RefusedGPU                           // it is on another GPU
	RefusedDescriptor                    // there was not one descriptor
	RefusedDriver                        // a call of its driver failed
	RefusedLimit                         // the limit of its device leaves no room
)

// String returns a word for the refusal.
func (r Refusal) String() string {
	switch r {
	case RefusedVersion:
		return "version"
	case RefusedSize:
		return "size"
	case RefusedGPU:
		return "GPU"
	case RefusedDescriptor:
		return "descriptor"
	case RefusedDriver:
		return "driver"
	case RefusedLimit:
		return "limit"
	}
	return fmt.Sprintf("reason %d", uint32(r))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (r Refusal) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// RefusedError says that the peer did not take the memory, or its events. It has the details.
type RefusedError struct{ Reason Refusal }

// Error includes the reason.
func (e *RefusedError) Error() string { return "share: the peer refused: " + e.Reason.String() }

// unsupported returns the error of a missing feature.
func unsupported(function string, lacking cudadrv.Capability) error {
	return &cudadrv.CallError{Func: function, Result: cudadrv.NotSupported, Detail: "the device has no " + lacking.String()}
}
