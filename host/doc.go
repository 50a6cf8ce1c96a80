// Package host allocates memory of the host and of devices through one interface. An Allocator
// returns Blocks; wrappers add a cache, a limit, statistics, a log or zeroed memory to any of them.
//
//	a := must(host.ByName("cuda:0/pinned", host.Options{})) // a cache of page-locked memory
//	b := must(a.Alloc(4<<20, 0))
//	copy(b.Bytes(), weights)
//	device.MemcpyHtoDAsync(x.Ptr(), b.Bytes(), s.Handle()) // does not wait: the memory is page-locked
//	b.Use(s.Handle())                                      // so the copy may outlast the Free
//	b.Free()                                               // no other Alloc gets b before the copy has finished
//
// # Words
//
// A block is a small value that names one allocation; copies name the same. Its kind is Pageable
// (the Go heap), PageLocked (the driver's, which copies reach without waiting) or Device. A source
// makes memory: Aligned, PageLockedMemory, StreamMemory. A wrapper has another allocator inside:
// Pool, Limit, Track, Log, Zeroed. A shelf is 64 slots of one class of a Pool and the word that
// says which of them are free. A use is work of a CUDA stream on a block, announced by Block.Use.
//
// # Composition
//
// Each allocator owns the blocks that it returns, and takes back only those (ErrForeign). So a block
// goes back through all wrappers that it came through, in the opposite order:
//
//	tracked := host.Tracked(host.Limited(cache, host.Bounds{Bytes: 1 << 30}))
//	b, err := tracked.Alloc(n, 64) // Limit counts, then the cache serves, then Track counts
//	err = b.Free()                 // Track, Limit, cache
//
// A failed Alloc or Free does not change the books of any wrapper, but for a Free of a block whose device was closed: the block
// is gone, and all count it out. Close of a wrapper closes the
// allocator inside. An allocator of another package may wrap these, too: see Block.Reown.
//
// # Sizes
//
// A size of 0 gives the zero Block, which is valid, holds nothing, counts nowhere and can be freed
// any number of times. Negative sizes, sizes above 1 TiB, and alignments that are not a power of two
// or above 2 MiB are refused with *SizeError and *AlignError before anything is touched. An
// alignment of 0 means any. Memory never moves.
//
// A Pool has blocks of fixed lengths, and asks its source for whole ones: powers of two up to 64 MiB, from a page on where the
// memory is page-locked, and eight lengths for each doubling above. So a request of up to 64 MiB may take nearly twice its
// bytes, one of 33 MiB has 64 MiB locked, and a larger one at most an eighth more. Block.Bytes has the requested length.
// Stats.LiveBytes, KeptBytes and PendingBytes of a Pool, and PoolConfig.KeepBytes, count whole blocks; a Tracked around it
// counts requested bytes, and the difference is the cost of rounding. A program with large blocks of one size takes them from
// a source: PageLockedSource locks the pages of a request, and no more.
//
// # States of a slot of a Pool
//
//	vacant --source serves a miss--> live --Free--> free --Alloc--> live
//	                                 live --Free, with uses--> pending --uses passed, seen--> free
//	vacant <--source takes it back-- released <--beyond KeepBytes, Trim, Close-- free
//
// free and vacant are bits of two words of the shelf, and the goroutine that clears a bit owns the slot. The
// slot's word is its generation. A block carries the generation that it was handed out with, and
// Free moves it on by a compare-and-swap: of several frees of a block one succeeds, the others get
// ErrDoubleFree, or ErrStale once the memory was freed again since.
//
// A pair served by the cache is three atomic operations: one takes the bit, one moves the
// generation, one puts the bit back. It takes no lock, makes no driver call, no heap allocation and
// no goroutine switch.
//
// # The bound
//
// A Pool keeps at most KeepBytes of free memory. The bound is divided among the shelves: each has an allowance, the number of
// its slots that may be free, and all allowances together are within the bound. A Free that finds its shelf within the
// allowance has nothing else to do. Otherwise it raises the allowance, with the unused allowance of other shelves if need be,
// or takes its block back out of the shelf and releases it. Free sets the bit and then reads the allowance; lowering an
// allowance writes it and then reads the bits: so one of the two sees the other. Pending memory does not count for the bound:
// it cannot be released before its uses have passed.
//
// # Uses
//
// Block.Use announces that work which the caller submits to a stream touches the block, up to Free.
// Free then records an event on each such stream, and the block is pending until all have passed.
// A stream must not be destroyed before Free has returned; afterwards it may. FreeAll records one
// event on each stream for all its blocks.
//
// An Alloc that finds no free slot looks at the pending ones, oldest first. It skips events of a stream on which an earlier
// event has not passed, so a stream whose work never ends costs each look one query and holds up no block that others used. A
// Free looks, too, when pending memory has doubled since the last look and exceeds KeepBytes.
//
// A stream that is being captured into a graph cannot be waited for: Free then refuses with a
// *CaptureError, and the block stays live. Capture in the relaxed mode: in the others CUDA forbids
// calls that allocate page-locked memory to other threads as well.
//
// # Calls that wait
//
//	Alloc        served by a cache: no. Else for the source: the driver's call (350 µs page-locked);
//	             if that is out of memory, for the release of all that the cache keeps, and again
//	Free         of Aligned, StreamMemory and a Pool: no. Of PageLockedMemory: for the whole device
//	Use, Stats   no
//	Trim, Close  for announced uses and for the driver, or the end of their context
//
// The driver frees page-locked memory only once the device has finished all queued work. So a Pool of page-locked memory has a
// goroutine for that: a release starts it, and it ends when nothing is left to be released. Requests can still get a block
// until it begins with that block. Trim and Close start one more, which waits for an event. If their context ends first, both
// goroutines continue and lose nothing. No other goroutine is started, and importing the package starts nothing.
//
// # Errors
//
// ErrNegative and ErrTooLarge (*SizeError), *AlignError, ErrLimit (*LimitError), ErrOutOfMemory (*MemoryError, which wraps the
// driver's error), ErrDoubleFree and ErrStale (ErrBadFree is the kind of both), ErrForeign, ErrNotLive, ErrClosed, *UseError,
// *CaptureError, *NameError, *ConfigError, *CapabilityError, and the driver's. Close returns a *LeakError while blocks are
// live. It leaves them valid: they can be used and freed, which returns their memory at once, and a later Close no longer
// reports them. Only memory of a device that Close also closes becomes invalid.
//
// # Concurrency properties
//
//   - All functions are safe for concurrent use. A goroutine that is stopped inside Alloc or Free
//     stops no other.
//   - The bound of a Limit is never exceeded, not even for a moment. The bound of a Pool holds whenever no Free is running.
//   - A block whose Free was refused is live, unless the refusal is ErrBadFree, or ErrClosed since the device of the block was closed.
//   - A freed block's bytes may belong to another caller at once, and page-locked memory may be unmapped: do not touch a slice
//     of Bytes after Free.
package host
