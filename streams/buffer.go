package streams

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams/magazine"
)

// Buffer is device memory that a caller owns: a small value whose copies name one allocation. The zero
// value names none.
type Buffer struct {
	slot  *magazine.Slot
	word  uint64 // of the slot when it was handed out
	bytes int64
}

// Ptr is the device address, aligned to 512 bytes. It is meaningless once the buffer was freed; the zero
// Buffer has none (0).
func (b Buffer) Ptr() cudadrv.Ptr {
	if b.slot == nil {
		return 0
	}
	return b.slot.Address()
}

// Bytes is the size that was asked for. The memory behind it may be longer.
func (b Buffer) Bytes() int64 { return b.bytes }

// Free gives the memory back to its stream: the caller's last use of it has been submitted to that
// stream, and to those that were announced. It may be called from any goroutine, does not wait and allocates nothing. Of several frees of
// one allocation exactly one succeeds; the others say ErrDoubleFree or, once the memory was handed out and freed
// again, ErrStale (both are ErrBadFree). After the device was closed it says ErrClosed.
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
