package streams

import (
	"fmt"

	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/pool"
)

// check returns the error of a request of that many bytes, if it can never be served. This and the
// checks below count the request as refused then.
func (w *wiring) check(bytes int64) error {
	if bytes < 0 {
		return w.tally.Refuse(fmt.Errorf("%w: %d bytes", ErrNegative, bytes))
	}
	if limit := w.limit.Load(); bytes > limit {
		return w.tally.Refuse(w.tooLarge(bytes, limit))
	}
	if w.cuda.closing.Load() {
		return w.tally.Refuse(w.cuda.closed())
	}
	return nil
}

// tooLarge returns the error of a request above the limit.
func (w *wiring) tooLarge(bytes, limit int64) error {
	e := &SizeError{RequestedBytes: bytes, LimitBytes: limit}
	if w.limitSource != nil {
		e.LimitSource = w.limitSource()
	}
	return e
}

// checkRequest is check with options.
func (w *wiring) checkRequest(r *Request) error {
	if limit := w.limit.Load(); r.Align < 0 || r.Align&(r.Align-1) != 0 || r.Align > limit {
		return w.tally.Refuse(&AlignError{r.Align, limit})
	}
	if err := w.names(r.Tenant, r.Reservation); err != nil {
		return err
	}
	return w.check(r.Bytes)
}

// names returns the error of a request that may not name a tenant or a reservation; nil names none.
func (w *wiring) names(t *pool.Tenant, r *pool.Reservation) error {
	if t != nil {
		if err := (*pool.TenantControl)(t).Of(w.pool); err != nil {
			return w.tally.Refuse(fmt.Errorf("%w: the tenant", err))
		}
	}
	if r != nil {
		if err := (*pool.ReservationControl)(r).Of(w.pool); err != nil {
			return w.tally.Refuse(fmt.Errorf("%w: the reservation", err))
		}
	}
	return nil
}

// checkBatch is check of all sizes of a batch.
func (w *wiring) checkBatch(bytes []int64) error {
	if err := sumError(bytes, w.limit.Load(), w.tooLarge); err != nil {
		return w.tally.Refuse(err)
	}
	return nil
}

// sumError returns the error of sizes of which one, or the sum, can never be served.
func sumError(bytes []int64, limit int64, tooLarge func(bytes, limit int64) error) error {
	var sum int64
	for i, n := range bytes {
		if n < 0 {
			return &BatchError{i, 1, fmt.Errorf("%w: %d bytes", ErrNegative, n)}
		}
		if n > limit {
			return &BatchError{i, 1, tooLarge(n, limit)}
		}
		if sum += n; sum > limit {
			return tooLarge(sum, limit)
		}
	}
	return nil
}

// queues reports whether a tenant's request must wait for earlier ones, even if the stream could serve it.
func (w *wiring) queues(waits bool) bool {
	return waits && claims.Queues(waits, claims.Stream{Demand: w.pool.Demand() > 0})
}
