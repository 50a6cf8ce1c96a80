package bytecheck

import (
	"fmt"

	"github.com/go-vram/vram"
)

// ByteError reports a byte of a live buffer that differs from the last write.
type ByteError struct {
	Stream      uint32 // by the number that vram gives it
	Ptr         vram.Ptr
	Bytes       int64 // of the buffer
	OffsetBytes int64 // of the first wrong byte
	Got, Want   byte
	Origin      string // how the buffer was allocated
}

// Error says where the first wrong byte is.
func (f *ByteError) Error() string {
	return fmt.Sprintf("bytecheck: byte %d of %d at %#x, stream %d, %s: %#02x instead of %#02x",
		f.OffsetBytes, f.Bytes, uint64(f.Ptr), f.Stream, f.Origin, f.Got, f.Want)
}

// PlaceError says that an address is no multiple of the alignment that was asked for.
type PlaceError struct {
	Ptr   vram.Ptr
	Align int64
}

// Error names both.
func (f *PlaceError) Error() string {
	return fmt.Sprintf("bytecheck: address %#x is no multiple of %d", uint64(f.Ptr), f.Align)
}
