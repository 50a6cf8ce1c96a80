// Package core decides for the cache of one stream and performs no effect. It runs inside the stream's turn,
// one call at a time. It works on the heap of the pages that the pool lent and on the owner's side of the
// stream's magazines. It has no goroutine, clock, context or driver.
//
// # Parts
//
// Core composes parts. Each part owns its state and sees only that and the parts below it:
//
//	snapshot check lookup demand upkeep release   of Core: operations on several parts
//	core                                          Alloc and its variants, Undo, Grant
//	classes large                                 serve a request: by a span, by a block
//	arrivals                                      collects freed slots
//	room                                          takes a block, and makes room for it
//	inFlight: queue slack                         pending blocks: freed, but in use by other streams
//	misses: stability    idle    surplus          events, and the decisions that follow
//	limits                                        the budget under pressure
//	retention: lru    spans                       magazines of large blocks; of classes
//	usage: quiescence gauge                       the memory in use, and the peaks
//	coverage directory                            optional, by subscription
//	ranges                                        the heap and its addresses
//
// # An allocation that misses the magazines
//
//  1. The core collects the blocks that callers freed since the last turn. The heap merges them with free
//     neighbours, or they return to their closed magazine.
//  2. Up to 64 KiB: the core retries the class's magazine, then parked magazines with free slots, and then
//     carves a new span from the heap.
//  3. Larger: the heap splits the best fitting range. If the length recurs, the block gets a slot of the
//     length's magazine and stays in it when freed. Otherwise it gets a loose slot and returns to the heap.
//  4. If no range fits, the core closes magazines of large blocks, least recently used first, and merges
//     their blocks until one fits. Then it retires idle spans.
//  5. Otherwise the core returns how many pages it needs, and the turn ends.
//
// # Subscriptions
//
// Every block that gets an occupant (a slot or a magazine) passes ranges.placed. Every block that becomes
// free passes ranges.notifyFreed. Pages pass grant and takePages. The coverage of fences and the directory
// subscribe to these events once the stream needs them.
//
// # Uses in flight
//
// A block that is freed while announced uses (magazine) are in flight is pending. It is listed under each
// stream that has not passed its use, by the number of the fence that covers the use. The turn that books the
// block as pending reads the numbers, after the free: exactly the fences that begin later cover it. Each turn
// lands the uses whose fences have passed, and then collects their blocks. The core decides which fences are
// missing (Due); the shell records them.
//
// # Retained large blocks
//
// Slots that keep large blocks have a budget in bytes: a part of the peak of live bytes (magazineShare). A
// length qualifies after heatKept consecutive misses of that length, if before each of them a block of it was
// freed since the last turn. The budget bounds the cached bytes if all such blocks were freed at once, so a
// free need not update a counter.
//
// # Quiescence
//
// When almost nothing is live, a step has ended, and the first allocations of the next one should find long
// ranges. Free slots still lie where the last step left them; the core returns them to the heap before it
// places the next block.
//
// # Pressure
//
// SetPressure sets how close the device is to its limit (internal/pressure). The level changes the effect of
// the settings:
//
//	level     magazines of large blocks  budget     idle after, decay within
//	Normal    all of the magazineShare   as set     10 ticks, 6 ticks
//	High      a quarter                  a half     3, 2
//	Critical  a sixteenth                a quarter  1, none: all is released then
//
// At High and Critical, blocks wait for a shared fence only up to the minimum. The level does not bound
// an active stream that has no budget.
//
// # Counting exactly
//
// With Settings.Exact no magazine serves. Every request gets a block of its own in a turn, after the core has
// collected all freed slots, so the peak of live bytes is exact. Spans in use when it begins count as live
// until their last buffer is freed.
//
// # Words
//
//	take         remove a block from the heap, or a slot from a magazine
//	place        give a block its occupant: the block is used from then on
//	vacate       a slot: its block becomes free
//	collect      book a freed slot: the owner has it again, with or without its block
//	Drain        collect all that callers freed
//	in flight    of a use on another stream: its fence has not passed; land: it has
//	pending      of a block: freed, with uses in flight
//	retire       free the span of a magazine that no buffer uses
//	keep         leave a large block in its magazine when freed; evict: close that magazine
//	shelve       hide a magazine of a class from callers
//	release      return pages to the pool
//	surplus      the least that was free at the end of a turn, over a window of ticks: it returns to the pool
//	unused       of a magazine: in it no slot was freed for a window of ticks: its free blocks return to the heap
//	stable       no pool memory was needed for a whole step: callers may pop the freed list directly
//	quiescent    less is in use than an eighth of the peak
//	covered      a fence was recorded after the last block on the page was freed
//	wanted       requests of the device wait for memory: every free wakes the owner
//
// # Invariants (Check)
//
// Every unit of the stream's pages is either free in the heap or part of exactly one used block. Every used
// block is the span of one magazine or the block of one slot. Every open magazine of large blocks is in the
// LRU list, and the budget counts the blocks of its attached slots. A pending block is a used block whose slot is
// neither live nor collected; it is listed once for each use that has not passed.
package core
