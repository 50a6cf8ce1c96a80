// Package inventory lists the live buffers of a device, sums them by owner, and prints both for people.
//
// # Words
//
// A buffer is live from its allocation to its free. Its block is the memory behind it, which may be longer than requested. Tag,
// tenant, requested size, time and place are known where the request named them or something watched the buffer; the others are
// zero. A List is the live buffers at one moment, the largest first. A Group is the sum of those that have a tag, a tenant, a
// stream or a place in common.
//
// # Concurrency properties
//
// All values are plain: one goroutine at a time, or any number that read. Nothing here looks at the clock.
package inventory
