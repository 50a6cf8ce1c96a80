// Package simulation plays the whole allocator from one seed, without a goroutine: the bare cores of
// the streams and of the pool, the magazines between callers and streams, the simulated device on its
// stepped clock, and scripted failures of its calls. A scheduler draws at random what happens next, so
// that a run meets in seconds what a program meets in months, and meets it again from the same seed.
//
// # What is real and what is played
//
// Real are the packages streams/core, streams/magazine, pool/core, internal/heap and the simulated
// device. Played are the shells around them: actors, futures and the driver goroutine. An actor is a
// queue of letters that are received in the order in which they were posted; a turn receives one or
// more of them and leaves effects. Effects of one turn are performed one by one and in order, but
// anything may happen between two of them, since the shells promise nothing more. The driver makes one
// call of its job at a time.
//
// # What is checked
//
//   - No two live buffers overlap, and all their memory is mapped and aligned (a dumb list of ranges).
//   - No memory is handed to another stream, or unmapped, before work that was submitted for it has
//     finished (a list of uses with their end in virtual time).
//   - Every request, trim, warm-up and close is answered exactly once, and nothing waits for ever once
//     the driver works again.
//   - The books of every core balance, the device's own books balance, and bytes by state add up: lent
//     is what streams hold and what is under way; reserved is what the device says is in use, and never
//     over the limit.
//   - Counts of allocations, frees and levels are exact.
//   - A double free and a free of a stale copy are refused; after the end a free says that all is closed.
//
// A failure names the seed and the last events.
package simulation
