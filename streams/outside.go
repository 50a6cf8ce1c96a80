package streams

import "context"

// Charge counts memory that the program gets directly from the driver in the limit and the statistics of the
// stream's device. Free memory of the device is released for it first. Errors: *pool.OutOfMemoryError,
// ErrClosed.
func (x Submitter) Charge(bytes int64) error {
	return x.s.asClosed(x.s.pool.Charge(context.Background(), x.s.id, bytes))
}

// Uncharge reverts a Charge, once the memory is returned to the driver.
func (x Submitter) Uncharge(bytes int64) { x.s.pool.Uncharge(bytes) }
