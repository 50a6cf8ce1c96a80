package host

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/units"
)

// Block is memory that a caller owns: a small value whose copies name one allocation. The zero
// Block holds nothing and is valid.
//
// It has four words: the compiler keeps no larger struct in registers, and a pair passes one through
// every wrapper twice.
type Block struct {
	slot  *slot
	word  uint64 // of the slot when the block was handed out
	bytes int64
	owner *Owner
}

// Owner is the identity of an allocator, which its blocks carry.
type Owner struct{ allocator Allocator }

// NewOwner makes an identity for an allocator of another package: see Block.Reown.
func NewOwner(a Allocator) *Owner { return &Owner{a} }

// Len returns the requested size in bytes.
func (b Block) Len() int64 { return b.bytes }

// Bytes returns the memory, as long as was requested; nil if the block was freed, is the zero Block, or
// is memory of a device. The slice is over with Free, also where another copy of the block is freed.
func (b Block) Bytes() []byte {
	if !b.Live() || b.slot.data == nil {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(b.slot.data, b.slot.offset)), b.bytes)
}

// Ptr returns the address by which devices reach the memory; 0 for pageable memory, the zero Block, and a
// block that was freed.
func (b Block) Ptr() cudadrv.Ptr {
	if !b.Live() || b.slot.ptr == 0 {
		return 0
	}
	return b.slot.ptr + cudadrv.Ptr(b.slot.offset)
}

// Kind returns the kind of the allocator; NoMemory for the zero Block.
func (b Block) Kind() Kind {
	if b.owner == nil {
		return NoMemory
	}
	return b.owner.allocator.Kind()
}

// Live reports whether the block holds memory and has not been freed.
func (b Block) Live() bool { return b.slot != nil && b.slot.word.Load() == b.word }

// Free gives the memory back to the allocator that the block came from: the last use of it by the
// caller is over, or was submitted to an announced stream, which has not been destroyed. Of several
// frees of one allocation exactly one succeeds; the others return ErrDoubleFree or, once the memory
// was allocated and freed again, ErrStale. After any other error the block is live, but for
// ErrClosed of a device that was closed. For the zero Block it does nothing. The package comment says which allocators wait.
func (b Block) Free() error {
	if b.slot == nil {
		return nil
	}
	return b.owner.allocator.Free(b)
}

// Use announces that work which the caller submits to a stream, before or after this call and until
// Free, touches the memory. After Free it serves no request before that work has finished. Memory
// that needs no announcement ignores it: pageable memory, for which the calls that copy wait, and
// memory of a stream that is used on that stream. Errors: ErrNotLive, and *UseError for memory that
// could not be waited for. Use does not wait, and makes no driver call.
func (b Block) Use(s cudadrv.Stream) error {
	if b.slot == nil {
		return nil
	}
	err := b.slot.announce(s, b.word)
	if errors.Is(err, ErrNotLive) {
		return &vram.NotLiveError{Call: "Block.Use", Bytes: b.bytes}
	}
	return err
}

// Reown makes the block another allocator's, for implementations that wrap others: their Alloc
// returns the inner allocator's block reowned from that to themselves, their Free passes it on
// reowned back. Errors: ErrForeign if the block is not owned by from, *ConfigError for nil.
func (b Block) Reown(from, to Allocator) (Block, error) {
	if from == nil || to == nil {
		return Block{}, noInner()
	}
	return b.reown(from.Owner(), to.Owner())
}

func (b Block) reown(from, to *Owner) (Block, error) {
	if b.slot == nil {
		return Block{}, nil
	}
	if b.owner != from {
		return Block{}, b.foreign()
	}
	b.owner = to
	return b, nil
}

// foreign refuses the block for an allocator that does not own it.
func (b Block) foreign() error {
	return fmt.Errorf("host: %v is not this allocator's: %w", b, ErrForeign)
}

// String has the length, the kind, and whether the block is live.
func (b Block) String() string {
	switch {
	case b.slot == nil:
		return "block of 0 B"
	case !b.Live():
		return fmt.Sprintf("block of %s, freed", units.Bytes(b.bytes))
	default:
		return fmt.Sprintf("block of %s of %v memory", units.Bytes(b.bytes), b.Kind())
	}
}

// lead returns how many bytes from an address on its next multiple of align is.
func lead(address uint64, align int64) int64 {
	if align <= 1 {
		return 0
	}
	return int64(-address & uint64(align-1))
}

// FreeAll frees blocks of any allocators, like a Free of each, but records one event on each used stream for all blocks of one
// Pool. It returns the error of the first refusal, prefixed with its index, and frees the others.
func FreeAll(blocks ...Block) error {
	var shared batch
	defer shared.drop() // also after a panic of the driver
	var first error
	for i, b := range blocks {
		if b.slot == nil {
			continue
		}
		if err := freeIn(b.owner.allocator, b, &shared); err != nil && first == nil {
			first = fmt.Errorf("host: block %d of %d: %w", i, len(blocks), err)
		}
	}
	return first
}

// batcher is an allocator that passes a batch on to the pool inside it, or is one.
type batcher interface {
	freeIn(b Block, shared *batch) error
}

// freeIn frees a block as a part of a batch, if the allocator can.
func freeIn(a Allocator, b Block, shared *batch) error {
	if within, ok := a.(batcher); ok {
		return within.freeIn(b, shared)
	}
	return a.Free(b)
}
