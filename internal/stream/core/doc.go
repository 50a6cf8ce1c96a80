// Package core decides for the cache of one stream; it performs nothing. It runs inside the stream's turn,
// one call at a time, on the heap of the pages that the pool lent to the stream and on the owner's side of
// the stream's magazines. It has no goroutine, clock, context or driver.
//
// # Parts
//
// Core composes parts. Each owns its state, and its methods see that and the parts below it:
//
//	snapshot check lookup demand upkeep release   of Core: what takes several parts
//	core                                          Alloc and its variants, Undo, Grant
//	classes large                                 serve a request: by a span, by a block
//	arrivals                                      takes home what callers freed
//	room                                          takes a block, and makes room for it
//	inFlight: queue slack                         pending blocks: freed, and other streams still use them
//	misses: stability    idle    surplus          what happened, and what follows
//	limits                                        the budget under pressure
//	retention: lru    spans                       magazines of large blocks; of classes
//	usage: quiescence gauge                       what is in use, and the peaks
//	coverage directory                            optional, by subscription
//	ranges                                        the heap and its addresses
//
// # The way of an allocation that no magazine could serve
//
//  1. Blocks that callers freed since the last turn come home: to the heap, which merges them with their
//     free neighbours, or to their closed magazine.
//  2. Up to 64 KiB: the class's magazine is tried again, else one that was parked and has free slots again,
//     else a new span is taken from the heap and carved.
//  3. Larger: the heap's best fitting range is split. If the length comes back often, the block gets a slot
//     of the length's magazine and will stay in it when freed; otherwise a loose slot, and it will return to
//     the heap.
//  4. If no range fits, magazines of large blocks are closed, the least recently used first, and their
//     blocks merged, until one does, and then idle spans are retired.
//  5. Else the core says how many pages it needs, and the turn ends.
//
// # What follows a block
//
// Every block that serves an occupant, a slot or a magazine, passes ranges.placed, and every one that comes
// home passes ranges.home; pages pass grant and takePages. The coverage of fences and the directory subscribe
// to these, once the stream needs them.
//
// # What is in flight
//
// A block that is freed while announced uses (magazine) are in flight is pending: it is listed under each
// stream that has not passed its use, by the number of the fence that covers the use. The numbers are read
// when a turn books the block as pending, after its free: a fence that is begun later covers it, and no other.
// Each turn lands the uses whose fences have been seen to pass, and their blocks come home. Which fences are
// missing (Due) is decided here; the shell records them.
//
// # What a magazine may hold
//
// Slots that keep large blocks are budgeted in bytes against the peak of live bytes (magazineShare). A length
// qualifies after heatKept misses of that length in a row, before each of which a block of it was freed since
// the last turn. The budget bounds what would be cached if all such blocks were freed at once, so that a free
// need not update a counter.
//
// # Quiescence
//
// When almost nothing lives any more, a step has ended, and what the next one allocates first should find
// long ranges. Free slots lie where the last step left them; before the next block is placed they go back to
// the heap.
//
// # Pressure
//
// How close the device is to its limit (internal/pressure) is told by SetPressure, and changes what the
// settings mean:
//
//	level     magazines of large blocks  budget     idle after, decay within
//	Normal    all of the magazineShare   as set     10 ticks, 6 ticks
//	High      a quarter                  a half     3, 2
//	Critical  a sixteenth                a quarter  1, none: all is released then
//
// Blocks that wait to share a fence wait no longer than the minimum at High and Critical. An active stream
// that has no budget keeps what it uses at each level.
//
// # Counting exactly
//
// With Settings.Exact no magazine serves: every request gets a block of its own in
// a turn, after what callers freed has come home, so that the peak of what lives is seen when it is reached.
// Spans that were in use when it began count as live until their last buffer is freed.
//
// # Words
//
//	take         a block out of the heap, or a slot out of a magazine
//	place        a block with its occupant: from then on the block is used
//	vacate       a slot: its block becomes free
//	come home    a freed slot is the owner's again, with its block or without
//	Drain        take home all that callers freed
//	in flight    of a use on another stream: its fence has not passed; land: it has
//	pending      of a block: freed, with uses in flight
//	retire       the span of a magazine that no buffer uses
//	keep         a large block in its magazine when freed; evict: close that magazine
//	shelve       a magazine of a class where no caller finds it
//	release      pages to the pool
//	surplus      the least that was free at the end of a turn, over a window of ticks: it goes back to the pool
//	stable       no pool memory was needed for a whole step: callers may pop the freed list directly
//	quiescent    less is in use than an eighth of the peak
//	covered      a fence was recorded after the last block on the page came home
//	wanted       requests of the device wait for memory: no block comes home unseen
//
// # Invariants (Check)
//
// Every unit of the stream's pages is either free in the heap or part of exactly one used block. Every used
// block is the span of one magazine, or the block of one slot. Every open magazine of large blocks is in the
// list by which the oldest is found, and what the slots attached to them hold is what the budget counts. A pending block is a used block whose slot is
// neither live nor home; it is listed once for each use that has not passed.
package core
