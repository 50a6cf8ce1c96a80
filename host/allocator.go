package host

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/go-vram/vram/internal/units"
)

// Allocator makes and frees blocks of one kind.
type Allocator interface {
	// Alloc makes a block of so many bytes whose address is a multiple of align, a power of two; 0
	// stands for any. Its contents are undefined. 0 bytes give the zero Block.
	Alloc(bytes, align int64) (Block, error)
	// AllocZeroed is Alloc with zeroed contents: host memory is zero when it returns, a stream's memory for work submitted to
	// the stream after it.
	AllocZeroed(bytes, align int64) (Block, error)
	// Free takes back a block that this allocator owns: see Block.Free.
	Free(b Block) error
	// Kind returns the kind of the blocks.
	Kind() Kind
	// Owner is the allocator's identity on its blocks: always the same, and no other's.
	Owner() *Owner
	// Stats reads the counters. They are a consistent snapshot only while nothing else is called.
	Stats() Stats
	// Close refuses further calls of Alloc and releases all free memory. While blocks are live it
	// returns a *LeakError; it can be called again.
	Close(ctx context.Context) error
}

// Trimmer is an Allocator that keeps free memory and can release it: Pool, and wrappers around one.
type Trimmer interface {
	// Trim releases all free memory and returns how much that was: see Pool.Trim.
	Trim(ctx context.Context) (releasedBytes int64, err error)
}

// Trim releases the free memory that an allocator keeps, or the one inside it. It does nothing for
// an allocator that keeps none.
func Trim(ctx context.Context, a Allocator) (releasedBytes int64, err error) {
	if t, ok := a.(Trimmer); ok {
		return t.Trim(ctx)
	}
	return 0, nil
}

// Kind is where the memory of a block is.
type Kind uint8

// The kinds.
const (
	NoMemory   Kind = iota // of the zero Block
	Pageable               // the Go heap: copies wait for the transfer, or for its staging
	PageLocked             // the driver's: copies do not wait, and devices can address it
	Device                 // a device's: Bytes is nil
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case NoMemory:
		return "no memory"
	case Pageable:
		return "pageable"
	case PageLocked:
		return "page-locked"
	case Device:
		return "device"
	}
	return "unknown kind"
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Stats are the counters of an allocator. Those that it does not count are 0. Blocks of no bytes
// are counted nowhere.
type Stats struct {
	LiveBlocks int64  `json:"live_blocks"`
	LiveBytes  int64  `json:"live_bytes"`  // as requested; of a Pool the whole blocks
	PeakBlocks int64  `json:"peak_blocks"` // of Track and of sources
	PeakBytes  int64  `json:"peak_bytes"`
	Allocs     uint64 `json:"allocs"`
	Frees      uint64 `json:"frees"`
	Refusals   uint64 `json:"refusals"` // calls of Alloc that returned an error

	// Of a Pool.
	KeptBytes       int64  `json:"kept_bytes"`       // free
	PendingBytes    int64  `json:"pending_bytes"`    // freed, with uses that were not seen to have passed
	ReleasingBytes  int64  `json:"releasing_bytes"`  // on their way to the source
	Misses          uint64 `json:"misses"`           // calls of Alloc that the source served, or refused
	Releases        uint64 `json:"releases"`         // blocks that went back to the source
	ReleaseFailures uint64 `json:"release_failures"` // the source refused to take a block; it is tried again
	LookFailures    uint64 `json:"look_failures"`    // the driver refused to tell whether an event has passed; it is asked again
}

// String has the main figures, on one line.
func (s Stats) String() string {
	text := fmt.Sprintf("live %s with %s (peak %s); %s, %s, %s", units.Count(s.LiveBlocks, "block"), units.Bytes(s.LiveBytes),
		units.Bytes(s.PeakBytes), units.Count(s.Allocs, "allocation"), units.Count(s.Frees, "free"), units.Count(s.Refusals, "refusal"))
	if s.KeptBytes+s.PendingBytes+s.ReleasingBytes > 0 {
		text += fmt.Sprintf("; kept %s, pending %s, releasing %s", units.Bytes(s.KeptBytes), units.Bytes(s.PendingBytes), units.Bytes(s.ReleasingBytes))
	}
	return text
}

const (
	// maxBytes bounds every request. Not smaller: hosts with a terabyte exist. Not larger: the Go
	// runtime panics on sizes beyond the address space, and nothing is to panic here.
	maxBytes = 1 << 40
	// MaxAlign bounds every alignment: 2 MiB, the page of a device and a huge page of the host. A
	// larger one would only waste address space.
	MaxAlign = 2 << 20
)

// checkRequest refuses a request that no allocator can serve.
func checkRequest(bytes, align int64) error {
	if bytes < 0 || bytes > maxBytes {
		return &SizeError{RequestedBytes: bytes, LimitBytes: maxBytes}
	}
	if align < 0 || align > MaxAlign || bits.OnesCount64(uint64(align)) > 1 {
		return &AlignError{Align: align, Limit: MaxAlign}
	}
	return nil
}
