package pool

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
)

// Reservation is memory of a device that was set aside for requests that name it. Any number of
// goroutines may use it.
type Reservation struct {
	pool     *Pool
	id       core.Client
	bytes    int64
	released atomic.Bool
	promise  futures.Promise[int64]
}

// errNoStream reports that a reservation has no stream that could wait.
var errNoStream = errors.New("pool: a reservation has no stream")

// Reserve sets memory aside, as one run of whole pages, under an id that no client has had. It
// waits for the driver and not for other callers' frees. If ctx ends first nothing is kept. The caller, which may try again,
// counts a request that ends for want of memory. Errors: *OutOfMemoryError, the context's, ErrClosed, and the driver's.
func (p *Pool) Reserve(ctx context.Context, id core.Client, bytes int64) (*Reservation, error) {
	pages := p.pagesFor(bytes)
	r := &Reservation{pool: p, id: id, bytes: int64(pages) * p.pageBytes}
	r.promise.On(p.host)
	p.ref.Call(&step{pool: p, message: core.Join{Client: id, Reserves: true}, client: (*reservationClient)(r)})
	p.Refill((*reservationClient)(r), core.Refill{Client: id, Token: 1, Pages: pages, Most: pages, LiveBytes: r.bytes, Bytes: bytes, RequestedBytes: bytes})
	if _, err := r.promise.Await(ctx); err != nil {
		r.Release()
		return nil, err
	}
	return r, nil
}

// made reports whether Reserve made the reservation.
func (r *Reservation) made() bool { return r != nil && r.pool != nil }

// Bytes returns the size at the beginning: whole pages. 0 of a nil or zero Reservation.
func (r *Reservation) Bytes() int64 {
	if r == nil {
		return 0
	}
	return r.bytes
}

// Release releases the memory that no request has drawn. Drawn memory stays with its buffers.
// Requests that name the reservation are from then on as any others. The second call does nothing,
// nor one on a nil or zero Reservation. It does not wait.
func (r *Reservation) Release() {
	if r.made() && !r.released.Swap(true) {
		r.pool.tell(core.Unreserve{Client: r.id}, fence.Mark{})
	}
}

// ReservationControl is a reservation as streams use it: their requests draw from it. A
// *Reservation converts to it, so that callers see none of these methods.
type ReservationControl Reservation

// Of returns the error of requests on that pool's memory that name the reservation: ErrNotOpen for
// a nil or zero Reservation, ErrForeign for one of another device.
func (r *ReservationControl) Of(p *Pool) error {
	switch {
	case !(*Reservation)(r).made():
		return ErrNotOpen
	case r.pool != p:
		return ErrForeign
	default:
		return nil
	}
}

// ID returns the number that a Refill has as From.
func (r *ReservationControl) ID() core.Client { return r.id }

// reservationClient is a reservation as the pool's client. It keeps the client's methods off the
// Reservation that callers hold.
type reservationClient Reservation

var _ Client = (*reservationClient)(nil)

// Granted implements Client.
func (r *reservationClient) Granted(uint64, []core.Run, bool) { r.promise.Complete(r.bytes, nil) }

// Denied implements Client.
func (r *reservationClient) Denied(_ uint64, err error) { r.promise.Complete(0, err) }

// Follow implements Client: a reservation gets no memory under others' fences.
func (*reservationClient) Follow(fence.Mark) error { return errNoStream }

// Asked implements Client. The core sends a reservation no reclaim request.
func (*reservationClient) Asked(uint64, uint32) {}

// Offered implements Client: a reservation does not wait.
func (*reservationClient) Offered(uint64, uint64) {}

// Demanded implements Client: no memory is freed to a reservation.
func (*reservationClient) Demanded() {}

// Idle implements Client: it has no stream.
func (*reservationClient) Idle() bool { return true }

// Look implements Client.
func (*reservationClient) Look() {}

// Usage implements Client. The core knows a reservation's memory.
func (*reservationClient) Usage() core.Usage { return core.Usage{} }
