package fleet

import (
	"context"
	"time"

	"github.com/go-vram/vram/fleet/ledger"
)

// Ledger keeps the books of a fleet, as package ledger describes. Package directory has the ledger of one host, and package etcd, a module
// of its own, the ledger of many machines. Any number of goroutines may use it.
type Ledger interface {
	// Lease makes a lease that ends with its holder: at once where the ledger sees the holder's end, else ttl after its last sign
	// of life. A ledger may round ttl up to whole seconds. It blocks until the lease is made.
	Lease(ctx context.Context, ttl time.Duration) (Lease, error)
	// Read returns the pairs of some keys at one revision, as ledger.Named has them; without keys all. The caller changes no value in it.
	Read(ctx context.Context, keys ...string) (ledger.Snapshot, error)
	// Commit carries out a transaction, and returns its revision. Errors: ledger.ErrConflict, ledger.ErrLeaseEnded, the context's,
	// ledger.ErrClosed, and the store's, after which the transaction may have been carried out.
	Commit(ctx context.Context, t ledger.Transaction) (revision int64, err error)
	// Wait blocks until a revision after the given one has changed a pair of some keys; without keys until there is one. It may return
	// early: a watch that has lost its place returns, and the caller reads again.
	Wait(ctx context.Context, after int64, keys ...string) error
	// Close ends the leases that the ledger has made, and releases its files or connections. Idempotent.
	Close() error
}

// Lease is the life of a holder, to which pairs are bound.
type Lease interface {
	// ID is the number that ledger.Put.Lease has; never 0.
	ID() int64
	// Done is closed when the lease has ended, as far as its holder can know.
	Done() <-chan struct{}
	// Close ends the lease. All pairs that are bound to it are deleted, at the latest when the ledger notices. Idempotent.
	Close() error
}
