package streams

import (
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/pool"
)

// Request is a request for a buffer. The zero value of each option costs nothing.
type Request struct {
	// Bytes is the size, 0 or more; a size of 0 gives a valid buffer that holds nothing.
	Bytes int64
	// Align is the alignment of the address in bytes: a power of two up to the device's limit, or
	// 0. Every buffer is aligned to 512. For more, the buffer is cut from a free range, and no
	// magazine serves it.
	Align int64
	// Zero sets the memory to zero by a memset on the stream: work submitted to the stream
	// afterwards finds zeros. It is a driver call.
	Zero bool
	// Tag names the buffer in reports of live buffers. It costs a heap allocation of 64 bytes, and a look
	// at the clock for the buffer's age.
	Tag string
	// Wait lets the request wait for other callers' frees where memory is short, until the end of
	// its context, rather than fail: see the package comment. A request that memory serves immediately
	// costs nothing more.
	Wait bool
	// Priority orders the waiting requests: higher priorities are served first, and within one the
	// older request.
	Priority int
	// Tenant is charged with the request, like its stream; nil: no tenant. It costs a heap
	// allocation or two.
	Tenant *pool.Tenant
	// Reservation is memory that the request may draw from where the stream has none cached (see Reservation); nil: none.
	// A zero one is refused with ErrNotOpen, one of another device with ErrForeign, also where it is not needed.
	Reservation *pool.Reservation
}

// plain reports whether a block of a magazine is all that the request needs.
func (r *Request) plain() bool {
	return r.sized() && !r.Zero && r.Tag == "" && r.Tenant == nil && r.Reservation == nil // which may not be one of the device
}

// sized reports whether a magazine's blocks have the wanted alignment.
func (r *Request) sized() bool {
	return uint64(r.Align) <= sizeclass.UnitBytes && r.Align&(r.Align-1) == 0
}
