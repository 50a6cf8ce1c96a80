package magazine

import (
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/stream/sampling"
)

// note is what stands beside the words of few slots. It stays with the slot once it has one.
type note struct {
	bits   atomic.Uint64          // by the numbers of other streams, while Announced is set; see Record
	uses   atomic.Pointer[use]    // of the live handle, the latest first; taken whole by the owner when it is free
	holder atomic.Pointer[use]    // by the stream that a moved block belongs to
	moved  atomic.Uint64          // the handle of which holder is
	record atomic.Pointer[record] // of tags and places
	charge atomic.Pointer[charge] // of a charged handle
}

// moreUses says that the slot's note lists uses. The bits below stand for the streams of those numbers.
const moreUses = 1 << line.Count

// use is a use of one handle's block by one stream that is told apart from others: because its end
// will be said, or because its stream has no number. It is in the list of its slot's note until the
// owner takes that.
//
//	open n   --end: CAS-->      ended n     the fence of number covers the uses before
//	ended n  --begin: CAS-->    open n+1
//
// A recorded one lasts until the free, whatever its state.
type use struct {
	next     atomic.Pointer[use] // changes only to skip uses that drop removes
	line     *line.Line
	state    atomic.Uint64 // how often it was begun, and whether it was ended
	number   atomic.Uint64 // of the line's fence that covers it, once it was ended: only rises
	recorded atomic.Bool
	hand     atomic.Pointer[Hand] // of the stream, if a block was moved to it
}

const endedBit = 1

// find is a use by that stream, nil if there is none.
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

// add lists a new use that is open, and drops those that nobody has to wait for any more: a buffer may outlive any number of
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

// drop removes the uses by streams that have ended, whose work has finished. A line stays finished, so that a use which one
// goroutine removes and another one's change brings back does no harm, and goes with the next add.
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

// record is the name, the requested size, the time and the places of a handle. It does not change: a
// change is another one in its place.
type record struct {
	word    uint64 // of the handle
	bytes   int64  // that were asked for
	tag     string
	at      time.Time // of the allocation
	history *History  // of a watched handle
}

// History is the record of a watched handle. It does not change.
type History struct {
	Address   cudadrv.Ptr
	Bytes     int64 // that were asked for
	Tag       string
	Tenant    string    // by its name; "": none
	At        time.Time // of the allocation
	Allocated site.Stack
	Freed     site.Stack      // unknown before it was freed, and unless everything is sampled
	Sample    sampling.Sample // zero: it is not part of the profile

	word   uint64
	former *History // of the slot's watched handle before
}

// formerLimit is how many handles of before a slot remembers. Not fewer: a stale handle is mostly
// of the last few. Not more: each is kept as long as the slot, with two places.
const formerLimit = 4

// watcher is told of the frees of watched handles, on the goroutine that frees, before the block
// can be had again. It must not wait.
type watcher interface{ Freed(h *History) }

// cut is a history with so many at most in its chain.
func (h *History) cut(count int) *History {
	if h == nil || count == 0 {
		return nil
	}
	short := *h
	short.former = h.former.cut(count - 1)
	return &short
}

// isOf reports whether a record is of a handle, or of one of the same allocation: it stays when the
// block is moved.
func (r *record) isOf(handle uint64) bool { return r.word>>generationShift == handle>>generationShift }

// payer is told of the frees of what is charged to it, on the goroutine that frees, perhaps inside
// a turn. It must not wait.
type payer interface {
	Paid(bytes int64)
	PayerName() string
}

// charge is the payer of a live handle. It does not change.
type charge struct {
	payer          payer
	bytes          int64
	requestedBytes int64
	at             time.Time // of the allocation
}
