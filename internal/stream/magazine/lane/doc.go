// Package lane has the lanes of a stream: each is one goroutine's side of the stream's cache, which
// works on plain memory.
//
// # Words
//
// A lane has magazines that only lanes use, for good. Leases is the owner's part that leases them.
// A span is a block of the heap from which a leased magazine's slots of one class were carved. The
// charge of a lane is what counts against its budget: free large blocks, spans none of whose blocks
// lives, and, for each class in use, the span that serves it. What a lane keeps beyond its budget
// is shed, and the next turn releases it.
//
// # Leased magazines
//
// A lane works on its magazines with loads and plain stores: which slots are free it knows from a
// word of its own (classes) or from lists by length (large blocks), not from the mask. The mask is
// parked for good, so that no caller takes from it, and collects the frees of others.
//
//	state       by       operation                      next state and its meaning
//	parked      other    free: word CAS, then OR of     parked with bits; if OR returned "parked" and no
//	                     the slot's bit                 slot, this caller hands the magazine to the owner
//	parked,     owner    Swap(parked), for the lane     parked; the slots of the bits that were freed since
//	handed over          that has it, or for itself     they were handed out are home
//	word of g   lane     take of a free slot: handed    the same word; the lane's caller has generation g
//	                     becomes the word
//	word of g,  lane     free of a handle of g: plain   generation g+1; the slot is the lane's
//	no flags             store
//	word of g,  other,   free of a handle of g: CAS     generation g+1 with the flags, which are cleared when
//	flags       lane     and OR as above                the slot is taken home: they are not handed over here
//
// A lane's free compares the word and then stores it. A free of the same handle by another
// goroutine between the two succeeds as well, and sets the slot's bit sooner or later, perhaps when
// the slot has been handed out again or has another block. So a bit alone means nothing: a slot
// comes home only if it was out and its word differs from that with which it was handed out
// (handed). The store of a lane puts nothing into the word that such a free has not put there,
// except that it ends flags which were announced between.
//
// A leased magazine is with a lane, orphaned (its lane was closed while slots of it were live: the next
// lane that needs its class adopts it, else its block is released when all slots are home) or spare
// (without a block). It never becomes an ordinary one: there no free would look twice at a bit.
//
// # Concurrency properties
//
// The methods of Lane are for one goroutine at a time. Those of Leases are for the goroutine that
// runs the stream's turn. It works on a lane's own words only while the lane's goroutine waits for
// it, or runs the turn itself. Reasons to come to the owner (Reason) are set in turns and loaded by
// each call of the lane.
package lane
