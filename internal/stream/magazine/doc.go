// Package magazine holds the words that callers and a stream's actor share: the slots in which
// blocks lie, the magazines that say which slots are free, and the lists by which blocks go home. A
// cached allocation is one compare-and-swap, a free is one compare-and-swap and one OR. A goroutine
// that is stopped anywhere in between stops no other.
//
// # Words
//
// A slot is the place of one block: its address and its word. A magazine is up to 62 slots of one
// length and its mask. The owner is the stream's actor: the goroutine that runs the stream's turn.
// A slot is home when its block is the owner's: before the owner hands it out, and after it came
// back through the mask of a magazine that the owner closed or through a list. A handle is what a
// caller holds of a live slot: the slot and the word that it had when it was handed out.
//
// # The slot's word
//
//	63 .............. 16 | 15 ..... 8 | 7 ...... 3 | 2 ..... 0
//	generation           | moves      | user       | flags
//
// The generation counts the frees of the slot, the moves how often its block was handed over since.
// A handle is live while both are its own. Flags say that the next free must go the slow way, and
// with them stands the number of a stream that uses the block; a handle's word has none of this.
//
//	by        from                          to                       when
//	caller    generation g, no flags        generation g+1           Free of a handle of g: CAS
//	caller    generation g, moves m,        generation g+1,          Free of a handle of g and m, slow way: CAS;
//	          flags f                       no moves, no flags       the flags go with the slot to the owner (a
//	                                                                 watched one is told, and goes the slow way
//	                                                                 only for other flags)
//	caller    generation g+1                unchanged                Free of a handle of g: a double free
//	caller    generation g+2 or later       unchanged                Free of a handle of g: a stale handle
//	caller    generation g, other moves     unchanged                Free of a handle of g and m: it was handed over
//	caller    generation g, moves m,        generation g, moves      Move of a handle of g and m: CAS
//	          flags f                       m+1, flags f|Announced
//	any       generation g, moves m,        the same, flags f|x      announce x on a handle of g and m: CAS
//	          flags f
//	caller    generation g, moves m,        the same, user n,        Record of stream n on a handle of g and m: CAS
//	          no user or n, flags f         flags f|Announced
//	owner     generation g, flags f         generation g, no flags   the slot is home
//
// A word with moves has Announced: so the fast free, which compares the whole word, need not know
// of moves.
//
// The owner may announce on the word of a slot that is not home without knowing whether it is live. If
// its free was under way, the flag is on the next handle, whose free then goes the slow way.
//
// # Files, from the ground up
//
// word.go, mask.go and top.go have the transitions as pure functions, which the models of the tests
// share. note.go is what few slots have beside their words. slot.go lays out slots, magazines and
// the lists in memory; home.go has the lists and the names of slots in them. uses.go, told.go,
// free.go and frees.go are what callers do with a slot; sampling.go says which allocations are
// sampled; cache.go is where callers find a slot.
// buckets.go, spans.go, exacts.go and loose.go are the owner's parts; owner.go ties them together.
//
// # Uses
//
// One stream that uses the block stands in the word, if it is one of the first 31 of the device.
// Beside the word, in the slot's note, stand the others: a bit for each of the first 63, and a bit
// that says that the note lists more. It is written before Announced is set, by the goroutine that
// announces, and read by the owner once a free has brought the slot with Announced:
//
//	by        uses           to             when
//	caller    u              u|n            Record of stream n on a handle that was live a moment ago, and has the
//	                                        number of another or n is too high: OR
//	caller                                  then Announced on the handle: CAS, or a load that finds it
//	caller    list           list + use     Begin, RecordLine: CAS; then u|more: OR; then Announced
//	owner     u              0              TakeUses, of a slot that was freed with Announced: Swap
//
// The compare-and-swap, or the load, decides: while it finds the handle live, no free of it has
// been, so a later one finds the flag and behind it the bit. If it does not, the bit has no reader
// before the next announced free of the slot, which then waits for one stream that it need not wait
// for.
//
// The owner keeps a slot whose uses have not passed: it is neither home nor free to be taken.
//
// # The magazine's mask
//
//	63      62      61 ................ 0
//	closed  parked  slot i is free
//
//	state    by      operation                    next state and what it means
//	open     caller  take: CAS clears the lowest  open; the caller owns the slot's block
//	open     caller  put: OR of the slot's bit    open
//	open, 0  owner   park: CAS 0 -> parked        parked: out of use until a caller puts
//	open     owner   shelve: OR of parked         parked, as above; with slots it is the owner's at once
//	parked   caller  take                         refused
//	parked   caller  put: OR returned "parked"    parked; this caller, and no other, hands the magazine
//	                 and no slot                  to the owner through the list of parked magazines
//	parked   owner   unpark: AND of not parked    open
//	parked   owner   take: CAS clears free slots  parked; if those were the last, the next put hands it over
//	any      owner   close: Swap(closed)          closed; the slots that were free are home
//	closed   caller  take                         refused
//	closed   caller  put: OR returned "closed"    closed; this caller hands the slot to the owner
//	                 whatever else                through the list of freed slots
//	closed   owner   open: Swap(0)                open; bits put while it was closed mean nothing, their
//	                                              slots are in the list
//	open,    owner   put: OR, of a slot of a      open, parked; if OR returned "parked" and no slot, the
//	parked           class that came through      magazine is the owner's at once
//	                 the list with flags
//
// One compare-and-swap may clear the lowest bits of several free slots, and one OR set the bits of
// several freed ones: that is as many steps of the table in a row, with no other step in between.
//
// A loose magazine is closed for good: its slots serve blocks of any length, one by one. A magazine
// of a class is closed to be used anew by a compare-and-swap of the mask with all its slots free,
// and not while a caller that was told to hand it over has yet to arrive: it would be handed over
// twice. Closed by Swap, it is closed for good.
//
// # The list of freed slots
//
// Its top is a word of the cache: the name of the slot there, and how often slots were taken from
// the list. Aside of each slot in it stand the name of the slot below and, if any caller may take
// the block as it is, the block's length.
//
//	by        from                     to                        when
//	caller    count n, top t           count n, top s            hand slot s over: t and a length aside of s, then CAS
//	caller    count n, top s           count n+1, top below s    TakeBack: CAS; the caller has the slot and its block
//	owner     count n, top s           count n+1, no slot        Freed: CAS
//
// Only loose slots without flags have a length there. The owner says how long a block may be that
// is taken back (LetTakeBack), and does not hear of it: to its books the slot was in use all the
// time. The count makes a compare-and-swap fail whose caller has looked at the top before it was
// taken: what stood aside may be old. It comes round after 2^32 takes; a caller would have to be
// stopped for exactly as many.
//
// Slots that other streams use have a list of their own, so that they do not hide slots that can be
// used. Its top says, beside the name, how many there are and how long they are:
//
//	by        from                     to                        when
//	caller    any, top t               more, top s               hand slot s over: t aside of s, then CAS
//	owner     any                      0                         Used: Swap; what others use serves no request yet, so
//	                                                             the owner may wait until it is a pile
//
// # Samples
//
// An allocation is sampled with a probability that is proportional to the length of its block (Share).
// The decision (Draw) is a hash of the block's address and the handle, that is, of the generation: it
// needs no state that goroutines share, and a slot that is used again and again is drawn for anew each
// time. One word of the cache has the share, which the stream lowers while it takes many samples. A sampled handle has the flag Watched, and its history in the
// note: the watcher is told of its free, which then goes on as it would have gone.
//
// # What comes home
//
// Every magazine belongs to one part of the owner (Part): Spans, Exacts or Loose. A slot that came
// through a list, and a parked magazine in which a slot was freed, is told to its part and to no
// other. The goroutine that takes a list looks at the flags of a slot before it books the slot with
// Owner.Home.
//
// # Why each block has one owner
//
// Clearing a bit is a compare-and-swap on the whole mask, so exactly one caller gets a slot. The word
// moves from generation g to g+1 once, so of several frees of one handle one wins, and only the winner
// touches the mask. An OR returns what the mask was, so the winner knows whether the owner closed the
// magazine before its bit was set (then the slot is its own to hand over) or after (then the owner's
// Swap has seen the bit). The test in this package walks all interleavings of these steps on a model
// that shares the transition functions in word.go.
//
// # Concurrency properties
//
// Take, TakeBack, Free and Announce may be called from any goroutine. Everything on Owner is for the goroutine that runs the stream's turn.
// Slots handed over through a list arrive in no promised order.
package magazine
