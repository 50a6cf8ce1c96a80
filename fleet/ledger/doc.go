// Package ledger defines the books that the processes of a fleet share: a small store of keys with transactions, leases and
// revisions. Package directory keeps them on one host, package etcd in a cluster of etcd.
//
// # Words
//
// A revision is the number of a state; each transaction that changes a key makes the next one. A pair is a key with its value, the
// revision that made it (Create), the revision that last wrote it (Mod), and the lease that it is bound to. A lease is the life of its
// holder: when it ends all pairs that are bound to it are deleted, in one revision. A snapshot is all pairs at one revision.
//
// # Promises of a ledger
//
//   - Transactions are serial. One whose compares all hold is carried out whole; any other changes nothing.
//   - A put with a lease that has ended fails: nothing of a dead holder comes back.
//   - A snapshot is of one revision, and no older than the last transaction that its caller has committed.
//   - After an error other than ErrConflict and ErrLeaseEnded a transaction may have been carried out. Callers read again: each
//     transaction of a fleet has compares that fail when it is repeated.
package ledger
