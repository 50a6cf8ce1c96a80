package streams

import (
	"fmt"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool"
)

// Buffer is device memory that a caller owns: a small value whose copies name one allocation. The
// zero value names none.
type Buffer struct {
	slot  *magazine.Slot
	word  uint64 // of the slot when it was handed out
	bytes int64
}

// Ptr returns the device address, aligned to 512 bytes. It is meaningless once the buffer was freed; the
// zero Buffer has none (0).
func (b Buffer) Ptr() cudadrv.Ptr {
	if b.slot == nil {
		return 0
	}
	return b.slot.Address()
}

// Bytes returns the requested size. The block may be longer.
func (b Buffer) Bytes() int64 { return b.bytes }

// Free returns the memory to its stream: the caller's last use of it has been submitted to that
// stream, and to the announced ones. It may be called from any goroutine, does not wait and
// allocates nothing. Of several frees of one allocation exactly one succeeds; the others return
// ErrDoubleFree or, once the memory was allocated and freed again, ErrStale (both are ErrBadFree).
// After the device was closed it returns ErrClosed.
func (b Buffer) Free() error {
	if b.slot == nil {
		return ErrBadFree
	}
	return b.slot.Free(b.word)
}

// Live reports whether the buffer has not been freed.
func (b Buffer) Live() bool { return b.slot != nil && b.slot.Live(b.word) }

// Uintptr is Ptr in the form that gorgonia.org/tensor's Memory interface wants.
func (b Buffer) Uintptr() uintptr { return uintptr(b.Ptr()) }

// MemSize is Bytes in the form that gorgonia.org/tensor's Memory interface wants.
func (b Buffer) MemSize() uintptr { return uintptr(b.bytes) }

// String returns the buffer's length and address, or that it is not live.
func (b Buffer) String() string {
	switch {
	case b.slot == nil:
		return "no buffer"
	case !b.Live():
		return fmt.Sprintf("buffer of %s, freed", units.Bytes(b.bytes))
	default:
		return fmt.Sprintf("buffer of %s at %v", units.Bytes(b.bytes), b.Ptr())
	}
}

// Batch is buffers that were allocated together.
type Batch struct{ buffers []Buffer }

// Buffers returns the buffers in the order of the sizes. The slice is the caller's.
func (b Batch) Buffers() []Buffer { return b.buffers }

// Free frees all buffers of the batch as Stream.FreeBatch does.
func (b Batch) Free() error { return freeBatch(b.buffers) }

// String counts the buffers.
func (b Batch) String() string {
	var sum int64
	for _, one := range b.buffers {
		sum += one.bytes
	}
	return fmt.Sprintf("batch of %s of %s", units.Count(len(b.buffers), "buffer"), units.Bytes(sum))
}

func freeBatch(b []Buffer) error {
	var frees magazine.Frees
	refused := BatchError{}
	for i := range b {
		err := ErrBadFree
		if b[i].slot != nil {
			err = frees.Free(b[i].slot, b[i].word)
		}
		if err == nil {
			continue
		}
		if refused.Count == 0 {
			refused.Index, refused.Err = i, err
		}
		refused.Count++
	}
	err := frees.Flush()
	if refused.Count > 0 {
		return &BatchError{refused.Index, refused.Count, refused.Err}
	}
	return err
}

// blockBytes returns the length of the block that serves a buffer: the charge to its tenant.
func blockBytes(bytes int64) int64 {
	return int64(sizeclass.Units(max(bytes, 1))) << sizeclass.UnitShift //nolint:gosec // a size that was checked
}

// sumOfBlocks returns the sum of the blocks of a batch.
func sumOfBlocks(sizes []int64) (sum int64) {
	for _, bytes := range sizes {
		sum += blockBytes(bytes)
	}
	return sum
}

// LiveBuffer describes a live buffer.
type LiveBuffer = pool.LiveBuffer

// nameAll names the buffers of a batch, if it has a tag.
func nameAll(buffers []Buffer, tag string) {
	if tag != "" {
		nameBuffers(buffers, tag)
	}
}

func nameBuffers(buffers []Buffer, tag string) {
	now := time.Now()
	for _, b := range buffers {
		b.slot.SetTag(b.word, b.bytes, tag, now)
	}
}
