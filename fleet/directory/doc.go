// Package directory is the ledger of one host: a folder on a local file system, without a daemon. It needs Linux.
//
// # Leases
//
// A lease is a file that its process has locked (flock). The kernel ends the lock with the process, in every case, so no clock is
// asked whether a holder lives. A lease file is locked before it gets its name, and its name is used once: a file that can be locked is
// of a dead holder, for ever. Descriptors are closed on exec, and Close unlocks before it closes: a child that was forked at that
// moment keeps no lease. A network file system is refused: its locks may end while their holder lives.
//
// # Books
//
// Each revision is a file of its own, books/NUMBER: all pairs, with a checksum. A transaction reads the newest one, writes the next under
// a temporary name, and links it to the next number, which the kernel does once. So there is no lock that a stopped process could keep: it
// stops nobody. A process that dies at any moment leaves the old revision or the new one. A copy of each file, copies/NUMBER, serves
// where the first is damaged. The newest files are kept; a process that was stopped for longer, and links a number that was already
// deleted, sees that the file before is not the one that it has read, and reports that it does not know the outcome.
//
// Processes look for the next number: each ten milliseconds for a second after a revision, then each 100 to 150, when they look for leases that
// have ended. So a quiet ledger takes less than half a percent of a processor for each process, and its first change is seen that much later.
//
// Nothing is forced to the disk: pairs are bound to leases, and no lease outlives the host. After a power failure a damaged file without
// a living lease begins empty books, at its number. With a living lease it is a *CorruptError.
package directory
