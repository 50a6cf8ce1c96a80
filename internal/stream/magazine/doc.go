// Package magazine implements the memory that callers and a stream's actor share: slots, which hold blocks;
// magazines, which say which slots are free; and the lists by which freed slots return to the actor. A cached
// allocation is one compare-and-swap, a free is one compare-and-swap and one OR. A goroutine that is
// preempted anywhere in between blocks no other.
//
// # Words
//
// A slot is the place of one block: its address and its word. A magazine is up to 62 slots of one length and
// its mask. The owner is the stream's actor: the goroutine that runs the stream's turn. The owner has a slot
// before it hands it out, and after the slot returned: through the mask of a magazine that the owner closed,
// or through a list. A handle is a caller's reference to a live slot: the slot and the word that it had when
// it was handed out.
//
// # The slot's word
//
//	63 .............. 16 | 15 ..... 8 | 7 ...... 3 | 2 ..... 0
//	generation           | moves      | user       | flags
//
// The generation counts the frees of the slot. The moves count how often its block was handed over since
// then. A handle is live while both are equal to its own. Flags send the next free down the slow path, and
// with them is the number of a stream that uses the block; a handle's word has neither.
//
//	by        from                          to                       when
//	caller    generation g, no flags        generation g+1           Free of a handle of g: CAS
//	caller    generation g, moves m,        generation g+1,          Free of a handle of g and m, slow way: CAS;
//	          flags f                       no moves, no flags       the flags go with the slot to the owner (the
//	                                                                 free of a watched one is reported, and takes
//	                                                                 the slow path only for other flags)
//	caller    generation g+1                unchanged                Free of a handle of g: a double free
//	caller    generation g+2 or later       unchanged                Free of a handle of g: a stale handle
//	caller    generation g, other moves     unchanged                Free of a handle of g and m: it was handed over
//	caller    generation g, moves m,        generation g, moves      Move of a handle of g and m: CAS
//	          flags f                       m+1, flags f|Announced
//	any       generation g, moves m,        the same, flags f|x      announce x on a handle of g and m: CAS
//	          flags f
//	caller    generation g, moves m,        the same, user n,        Record of stream n on a handle of g and m: CAS
//	          no user or n, flags f         flags f|Announced
//	owner     generation g, flags f         generation g, no flags   the slot has returned
//
// A word with moves has Announced: so the fast free, which compares the whole word, need not check moves.
//
// The owner may announce on the word of a slot in use without knowing whether it is live. If the slot was
// being freed, the flag is on the next handle, whose free then takes the slow path.
//
// # Files, bottom-up
//
// word.go, mask.go and top.go have the transitions as pure functions, which the models of the tests share.
// note.go extends the words of few slots. slot.go lays out slots, magazines and the lists in memory;
// lists.go has the lists and the names of slots in them. uses.go, told.go, free.go and frees.go are the callers'
// operations on a slot; sampling.go decides which allocations are sampled; in cache.go callers find a slot.
// buckets.go, spans.go, exacts.go and loose.go are the owner's parts; owner.go combines them.
//
// # Uses
//
// One stream that uses the block is in the word, if it is one of the first 31 of the device. The others are
// in the slot's note: a bit for each of the first 63, and a bit that says that the note lists more. The
// goroutine that announces writes the note before it sets Announced. The owner reads it once a free has
// returned the slot with Announced:
//
//	by        uses           to             when
//	caller    u              u|n            Record of stream n on a handle that was live a moment ago, and has the
//	                                        number of another or n is too high: OR
//	caller                                  then Announced on the handle: CAS, or a load that finds it
//	caller    list           list + use     Begin, RecordLine: CAS; then u|more: OR; then Announced
//	owner     u              0              TakeUses, of a slot that was freed with Announced: Swap
//
// The compare-and-swap, or the load, decides: if it finds the handle live, no free of it has happened, so a
// later one finds the flag and then the bit. Otherwise nobody reads the bit before the next announced free of
// the slot, which then waits for one stream unnecessarily.
//
// The owner keeps a slot whose uses have not passed: it is neither free nor live.
//
// # The magazine's mask
//
//	63      62      61 ................ 0
//	closed  parked  slot i is free
//
//	state    by      operation                    next state and its meaning
//	open     caller  take: CAS clears the lowest  open; the caller owns the slot's block
//	open     caller  put: OR of the slot's bit    open
//	open, 0  owner   park: CAS 0 -> parked        parked: out of use until a caller puts
//	open     owner   shelve: OR of parked         parked, as above; if it has slots, the owner gets it immediately
//	parked   caller  take                         refused
//	parked   caller  put: OR returned "parked"    parked; this caller, and no other, hands the magazine
//	                 and no slot                  to the owner through the list of parked magazines
//	parked   owner   unpark: AND of not parked    open
//	parked   owner   take: CAS clears free slots  parked; if those were the last, the next put hands it over
//	any      owner   close: Swap(closed)          closed; the owner has the slots that were free
//	closed   caller  take                         refused
//	closed   caller  put: OR returned "closed"    closed; this caller hands the slot to the owner
//	                 and anything else            through the list of freed slots
//	closed   owner   open: Swap(0)                open; bits put while it was closed mean nothing, their
//	                                              slots are in the list
//	open,    owner   put: OR, of a slot of a      open, parked; if OR returned "parked" and no slot, the
//	parked           class that came through      owner gets the magazine immediately
//	                 the list with flags
//
// One compare-and-swap may clear the lowest bits of several free slots, and one OR set the bits of several
// freed ones: that is as many consecutive steps of the table, with no other step in between.
//
// A loose magazine is always closed: its slots serve blocks of any length, one by one. A magazine of a class
// is closed for reuse by a compare-and-swap of the mask with all its slots free. That fails while a caller
// has yet to hand the magazine over, which would otherwise happen twice. Closed by Swap, a magazine stays
// closed.
//
// # The list of freed slots
//
// Its top is a word of the cache: the name of the top slot, and how many times slots were taken from the
// list. Each slot in the list links the name of the slot below and, if any caller may take the block as it
// is, the block's length.
//
//	by        from                     to                        when
//	caller    count n, top t           count n, top s            hand slot s over: link s to t, with a length, then CAS
//	caller    count n, top s           count n+1, top below s    TakeBack: CAS; the caller has the slot and its block
//	owner     count n, top s           count n+1, no slot        Freed: CAS
//
// Only loose slots without flags have a length there. The owner sets the maximum length for TakeBack
// (LetTakeBack), and does not notice a TakeBack: in its books the slot stayed in use. The count makes the
// compare-and-swap fail for a caller that loaded the top before it was taken, since the link that it read may
// be stale. The count wraps after 2^32 takes; a caller would have to be preempted for exactly as many.
//
// Slots that other streams use have a list of their own, so that they do not hide usable slots. Its top has
// the name, the number of slots and their total length:
//
//	by        from                     to                        when
//	caller    any, top t               more, top s               hand slot s over: link s to t, then CAS
//	owner     any                      0                         Used: Swap; slots in use serve no request yet, so
//	                                                             the owner may wait until they are a pile
//
// # Samples
//
// An allocation is sampled with a probability proportional to the length of its block (Share). The decision
// (Draw) is a hash of the block's address and the handle, that is, of the generation: it needs no state that
// goroutines share, and each reuse of a slot is drawn again. One word of the cache has the share, which the
// stream lowers while it takes many samples. A sampled handle has the flag Watched, and its history in the
// note: its free is reported to the watcher and then continues as usual.
//
// # Returned slots
//
// Every magazine belongs to one part of the owner (Part): Spans, Exacts or Loose. A slot that returned
// through a list, and a parked magazine in which a slot was freed, is reported only to its part. The
// goroutine that takes a list checks the flags of a slot before it books the slot with the owner.
//
// # Why each block has one owner
//
// Clearing a bit is a compare-and-swap on the whole mask, so exactly one caller gets a slot. The word moves
// from generation g to g+1 once, so of several frees of one handle one wins, and only the winner touches the
// mask. An OR returns the previous mask, so the winner knows whether the owner closed the magazine before its
// bit was set (then the winner must hand the slot over) or after (then the owner's Swap has seen the bit). A
// test of this package walks all interleavings of these steps on a model that shares the transition functions
// in word.go.
//
// # Concurrency properties
//
// Take, TakeBack, Free and Announce may be called from any goroutine. All methods of Owner must be called on
// the goroutine that runs the stream's turn. Slots handed over through a list arrive in no promised order.
package magazine
