package core

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// largestCount is how many blocks a Largest keeps. Not fewer: some may be freed before an error shows ten.
// Not more: each costs a comparison for every visited block.
const largestCount = 16

// mostLooked bounds the slots of one stream that Largest visits: a millisecond. One comparison skips all
// slots of a magazine whose blocks are too small.
const mostLooked = 1 << 16

// Largest lists the largest live blocks of streams, largest first.
type Largest struct {
	Blocks  [largestCount]LargeBlock
	Count   int
	Partial bool // a stream had more blocks than were visited
}

// LargeBlock is a block of the list. Outside the turn only its slot's word and facts may be read.
type LargeBlock struct {
	Slot   *magazine.Slot
	Word   uint64
	Ptr    cudadrv.Ptr
	Units  uint32
	Stream uint32
}

// smallest returns the length that a block must exceed to count.
func (l *Largest) smallest() uint32 {
	if l.Count < largestCount {
		return 0
	}
	return l.Blocks[largestCount-1].Units
}

func (l *Largest) add(x LargeBlock) {
	at := min(l.Count, largestCount-1)
	for ; at > 0 && l.Blocks[at-1].Units < x.Units; at-- {
		l.Blocks[at] = l.Blocks[at-1]
	}
	l.Blocks[at] = x
	l.Count = min(l.Count+1, largestCount)
}

// Largest adds the live blocks of the stream that are large enough.
func (c *Core) Largest(l *Largest, stream uint32) {
	c.Drain()
	freed, looked := c.inFlight.all(), 0
	c.owner.All(func(m *magazine.Magazine) {
		if units := m.Units(); units != 0 && units <= l.smallest() {
			return
		}
		if looked > mostLooked {
			l.Partial = true
			return
		}
		m.EachLive(func(s *magazine.Slot) {
			looked++
			if units := m.UnitsOf(s); units > l.smallest() && !freed[s] {
				l.add(LargeBlock{s, s.Word(), s.Address(), units, stream})
			}
		})
	})
}
