// Package core decides for the cache of one stream; it performs nothing. It runs inside the stream's
// turn, one call at a time, on the heap of the pages that the pool lent to the stream and on the owner's
// side of the stream's magazines. It has no goroutine, clock, context or driver.
//
// # The way of an allocation that no magazine could serve
//
//  1. Blocks that callers handed over since the last turn go back: to the heap, which merges them with
//     their free neighbours, or to their closed magazine.
//  2. Up to 64 KiB: the class's magazine is tried again, else one that was parked and has free slots
//     again, else a new span is taken from the heap and carved.
//  3. Larger: the heap's best fitting range is split. If the length comes back often, the block gets a
//     slot of the length's magazine and will stay in it when freed; otherwise a loose slot, and it will
//     return to the heap.
//  4. If no range fits, magazines of large blocks are closed, the least recently used first, and their
//     blocks merged, until one does, and then spans that nobody uses.
//  5. Else the core says how many pages it needs (Need), and the turn ends.
//
// # What is pending
//
// A block that comes back with announced uses (magazine) is listed under each stream that has not passed it, by the
// number of the fence that covers it. The numbers are read when the block is sorted, after its free: a fence that is begun
// later covers it, and no other. Each turn takes home what has passed, as far as somebody has looked. Which fences are
// missing (Due) is decided here; taking them is not.
//
// # What a magazine may hold
//
// Slots that keep large blocks are budgeted in bytes against the peak of live bytes (magazineShare). A
// length qualifies when it missed several times in a row while a block of it had come home since the
// turn before (heatKept). The budget bounds what
// could be cached if all such blocks were freed at once, so that no free has to count.
//
// # Ebb
//
// When almost nothing lives any more, a step has ended, and what the next one allocates first should find long ranges. Slots that
// nobody uses lie where the last step left them; before the next block is placed they go back to the heap.
//
// # Pressure
//
// How close the device is to its limit (internal/pressure) is said from outside, by SetPressure, and changes what the settings mean:
//
//	level     magazines of large blocks  budget     idle after, decay within
//	Normal    all of their part          as set     10 ticks, 6 ticks
//	High      a quarter                  a half     3, 2
//	Critical  a sixteenth                a quarter  1, none: all is given back then
//
// Blocks that wait to share a fence wait no longer than the least at High and Critical. A stream without a budget that is at work keeps what it uses at each level.
//
// # What a lane may have
//
// A lane leases spans and large blocks from the free ranges and gives them back to those. Against its budget
// count the spans from which its classes are served, its other spans none of whose blocks lives, and its
// free large blocks. A lane asks for no pages: where the ranges do not suffice it gives up what it keeps,
// and then the request goes the stream's way.
//
// # Counting exactly
//
// With Settings.Exact no magazine serves, and a lane leases nothing: every request gets a block of its own in a
// turn, after what came home was taken back, so that the peak of what lives is seen when it is reached. Spans that were
// in use when it began, and what a lane has not given up yet, count as live until their last buffer is freed.
//
// # Invariants (Check)
//
// Every unit of the stream's pages is either free in the heap or part of exactly one used block. Every
// used block is the span of one magazine, or the block of one slot. Every open magazine of large blocks
// is in the list by which the oldest is found, and what the slots attached to them hold is what the
// budget counts. What lanes have is the sum of the blocks of their magazines. A pending block is a used block whose
// slot is neither live nor home; it is listed once for each use that has not passed.
package core
