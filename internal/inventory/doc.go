// Package inventory lists the live buffers of a device, sums them by owner, and prints both.
//
// # Words
//
// A buffer is live from its allocation to its free. Its block is its memory, which may be longer than
// requested. Tag, tenant, requested size, time and place are known if the request named them or the buffer
// was watched; otherwise they are zero. A List is the live buffers at one moment, largest first. A Group sums
// the buffers with the same tag, tenant, stream or place.
//
// # Concurrency properties
//
// All values are plain: they may be read concurrently, and not written. The package does not read the clock.
package inventory
