package ledger

import "errors"

// ErrConflict reports that a compare of a transaction failed: nothing was changed.
var ErrConflict = errors.New("ledger: another transaction came first")

// ErrLeaseEnded reports that a lease has ended: its pairs are deleted, and nothing was put.
var ErrLeaseEnded = errors.New("ledger: the lease has ended")

// ErrClosed reports a call after Close.
var ErrClosed = errors.New("ledger: closed")
