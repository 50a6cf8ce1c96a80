package magazine

import (
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/stream/sampling"
)

// note extends the word of few slots. A slot keeps its note once it has one.
type note struct {
	bits     atomic.Uint64          // by the numbers of other streams, while Announced is set; see Record
	uses     atomic.Pointer[use]    // of the live handle, latest first; the owner takes all when the slot is free
	holder   atomic.Pointer[use]    // of the stream to which a moved block belongs
	moved    atomic.Uint64          // the handle to which holder belongs
	record   atomic.Pointer[record] // of tags and places
	charge   atomic.Pointer[charge] // of a charged handle
	attached atomic.Pointer[attachment]
}

// attachment is a value that the package above keeps with an allocation. It is immutable.
type attachment struct {
	generation uint64 // of the handle
	value      any
}

// moreUses says that the slot's note lists uses. The bits below represent the streams of those numbers.
const moreUses = 1 << line.Count

// use is a use of one handle's block by one stream that needs its own record: its end will be reported, or
// its stream has no number. It is in the list of its slot's note until the owner takes that.
//
//	open n   --end: CAS-->      ended n     the fence of number covers the uses before
//	ended n  --begin: CAS-->    open n+1
//
// A recorded use lasts until the free, in either state.
type use struct {
	next     atomic.Pointer[use] // changes only to skip uses that drop removes
	line     *line.Line
	state    atomic.Uint64 // times begun, and whether it was ended
	number   atomic.Uint64 // of the line's fence that covers it, once ended: only rises
	recorded atomic.Bool
	hand     atomic.Pointer[Hand] // of the stream, if a block was moved to it
}

const endedBit = 1

// find returns a use by that stream, nil if there is none.
func (n *note) find(line *line.Line) *use {
	for u := n.uses.Load(); u != nil; u = u.next.Load() {
		if u.line == line {
			return u
		}
	}
	return nil
}

// begin opens an ended use by that stream, or a new one.
func (n *note) begin(line *line.Line) (u *use, state uint64) {
	for u = n.uses.Load(); u != nil; u = u.next.Load() {
		if state = u.state.Load(); u.line == line && state&endedBit != 0 && u.state.CompareAndSwap(state, state+1) {
			return u, state + 1
		}
	}
	return n.add(line), 0
}

// add lists a new open use, and drops those that no free must wait for: a buffer may outlive any number of
// streams.
func (n *note) add(line *line.Line) *use {
	n.drop()
	u := &use{line: line}
	for {
		latest := n.uses.Load()
		u.next.Store(latest)
		if n.uses.CompareAndSwap(latest, u) {
			return u
		}
	}
}

// drop removes the uses by streams that have ended and whose work has finished. A line stays finished, so if
// a concurrent change restores a removed use, it does no harm, and the next add drops it.
func (n *note) drop() {
	at := &n.uses
	for u := at.Load(); u != nil; u = at.Load() {
		if !u.line.Finished() {
			at = &u.next
			continue
		}
		at.CompareAndSwap(u, u.next.Load())
	}
}

// record is the name, the requested size, the time and the places of a handle. It is immutable; changes
// replace it.
type record struct {
	word    uint64 // of the handle
	bytes   int64  // requested
	tag     string
	at      time.Time // of the allocation
	history *History  // of a watched handle
}

// History is the record of a watched handle. It is immutable.
type History struct {
	Address   cudadrv.Ptr
	Bytes     int64 // requested
	Tag       string
	Tenant    string    // name; "": none
	At        time.Time // of the allocation
	Allocated site.Stack
	Freed     site.Stack      // unknown before it was freed, and unless everything is sampled
	Sample    sampling.Sample // zero: it is not part of the profile

	word   uint64
	former *History // of the slot's previous watched handle
}

// formerLimit is how many previous handles a slot remembers. Not fewer: a stale handle is mostly one of the
// last few. Not more: each is kept as long as the slot, with two places.
const formerLimit = 4

// watcher is notified of the frees of watched handles, on the goroutine that frees, before the block can be
// reused. It must not block.
type watcher interface {
	Freed(h *History)
	Helpers() *site.Helpers // left out of the places of frees; nil: none
}

// cut returns the history with at most count entries in its chain.
func (h *History) cut(count int) *History {
	if h == nil || count == 0 {
		return nil
	}
	short := *h
	short.former = h.former.cut(count - 1)
	return &short
}

// isOf reports whether a record belongs to a handle, or to an earlier one of the same allocation: the record
// stays when the block is moved.
func (r *record) isOf(handle uint64) bool { return r.word>>generationShift == handle>>generationShift }

// payer is notified of the frees of blocks that are charged to it, on the goroutine that frees, possibly
// inside a turn. It must not block.
type payer interface {
	Paid(bytes int64)
	PayerName() string
}

// charge is the payer of a live handle. It is immutable.
type charge struct {
	payer          payer
	bytes          int64
	requestedBytes int64
	at             time.Time // of the allocation
}
