package lane

import (
	"math/bits"
	"unsafe"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Magazine is a magazine that only lanes use, for good. It is with a lane, orphaned (its lane was
// closed while slots of it were live) or spare (it has no blocks).
//
// The lessee is shared. local is the lane's, or the owner's while no lane has the magazine. The rest is
// the owner's, which changes it, where a lane has the magazine, only on behalf of that lane. All of it
// lies away from the mask, which other goroutines write.
type Magazine struct {
	magazine.Magazine
	books
	slots [magazine.SlotCount]magazine.Slot
}

type books struct {
	local        uint64    // slots known to be free
	whole        uint64    // slots that have a block
	older, newer *Magazine // in a list of the lane, or of those that no lane has
	next         *Magazine // in a list of those that were handed over
	Block        int32     // of the heap, that all slots were carved from; None if each has its own
	Class        int32     // -1: each slot has a block of its own
	serving      bool      // its lane serves the class from it
	_            [magazine.BooksBytes - 6*8 - 1]byte
}

// none stands for no block of the heap.
const none int32 = -1

// of is a magazine as a leased one. Of one that may be of another kind only the lessee is looked at.
func of(m *magazine.Magazine) *Magazine { return (*Magazine)(unsafe.Pointer(m)) }

// lane is the lane that has the magazine; nil if none has.
func (m *Magazine) lane() *Lane { return (*Lane)(unsafe.Pointer(m.Lessee.Load())) }

// LeasedUnits is the length of the blocks that a lane has in the magazine; 0 if no lane has it.
func (m *Magazine) LeasedUnits() (units uint64) {
	switch {
	case m.Lessee.Load() == nil:
	case m.Class >= 0:
		units = spanUnits(int(m.Class))
	default:
		for f := m.whole; f != 0; f &= f - 1 {
			units += uint64(m.slots[bits.TrailingZeros64(f)].Units)
		}
	}
	return units
}

func spanUnits(class int) uint64 { return uint64(sizeclass.SpanUnits(class)) }

// shelf is what a lane has of a class. Magazines none of whose slots is free are in no list.
type shelf struct {
	current *Magazine // from which requests are served
	ready   pile      // the others that have free slots
}

// pile is a list of leased magazines of a class.
type pile struct{ newest *Magazine }

// serve makes a magazine, or none, the one from which requests are served.
func (sh *shelf) serve(m *Magazine) {
	if sh.current != nil {
		sh.current.serving = false
	}
	if sh.current = m; m != nil {
		m.serving = true
	}
}

func (p *pile) push(m *Magazine) {
	m.older, m.newer = p.newest, nil
	if p.newest != nil {
		p.newest.newer = m
	}
	p.newest = m
}

func (p *pile) remove(m *Magazine) {
	if m.newer != nil {
		m.newer.older = m.older
	} else {
		p.newest = m.older
	}
	if m.older != nil {
		m.older.newer = m.newer
	}
	m.older, m.newer = nil, nil
}
