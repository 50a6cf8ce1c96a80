package streams

import (
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/pool"
)

// Request says what is wanted. The zero value of each option costs nothing.
type Request struct {
	// Bytes is the size, 0 or more; a size of 0 gives a valid buffer that holds nothing.
	Bytes int64
	// Align is what the address shall be a multiple of, in bytes: a power of two up to the device's limit, or
	// 0. Up to 512 every buffer has it. Beyond, the buffer is cut from a free range with such a place, and
	// no magazine serves it.
	Align int64
	// Zero has the memory set to zero by a memset on the stream: work submitted to the stream afterwards
	// finds zeros. It is a driver call.
	Zero bool
	// Tag names the buffer in reports of what lives. It costs a heap allocation of some 30 bytes.
	Tag string
	// Wait lets the request wait for other people's frees where memory is short, until the end of its context, rather
	// than fail: see the package comment. One that memory serves at once costs nothing more.
	Wait bool
	// Priority decides who of those that wait is served first: higher ones are, and of equal ones the older.
	Priority int
	// Tenant is whom the request is charged to, beside its stream; nil: nobody. It costs a heap allocation or two.
	Tenant *pool.Tenant
	// Reservation is what the request may draw from: see Reservation. Nil: nothing.
	Reservation *pool.Reservation
}

// plain reports whether a magazine's block is all that is wanted.
func (r *Request) plain() bool { return r.sized() && !r.Zero && r.Tag == "" && r.Tenant == nil }

// sized reports whether a magazine's block is aligned as it is wanted.
func (r *Request) sized() bool {
	return uint64(r.Align) <= sizeclass.UnitBytes && r.Align&(r.Align-1) == 0
}
