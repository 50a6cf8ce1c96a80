package core

import (
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/memorymap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Map adds all memory of the stream with that number, in the order of its pages. Offsets count from page 0 of
// the arena. It visits every block, and reads each magazine as it is at that moment.
func (c *Core) Map(stream uint32, add func(memorymap.Range)) {
	c.Drain()
	m := mapper{heap: c.ranges.heap, pending: c.inFlight.all(), stream: stream, add: add}
	m.occupants = make([]occupant, m.heap.Nodes())
	eachBlock(c.owner, func(block int32, o occupant) { m.occupants[block] = o })
	m.heap.EachRun(m.visit)
}

// mapper determines the state of each block.
type mapper struct {
	heap      *heap.Heap
	pending   map[*magazine.Slot]bool
	occupants []occupant // by block
	stream    uint32
	add       func(memorymap.Range)
}

// visit adds a block of the heap.
func (m *mapper) visit(block int32, s heap.State) {
	offset, units := m.heap.Offset(block), m.heap.Units(block)
	if s == heap.Free {
		m.put(offset, units, memorymap.CachedRange, nil)
		return
	}
	switch o := m.occupants[block]; {
	case o.magazine != nil:
		m.span(offset, units, o.magazine)
	case o.slot != nil:
		m.slot(offset, units, o.slot)
	default: // between two owners
		m.put(offset, units, memorymap.CachedBlock, nil)
	}
}

// span adds the slots that are carved from a block, and its remainder.
func (m *mapper) span(offset, units uint32, of *magazine.Magazine) {
	for used := uint32(0); used < units; {
		s := of.Carved(used)
		if s == nil {
			m.put(offset+used, units-used, memorymap.CachedBlock, nil)
			return
		}
		each := of.UnitsOf(s)
		m.slot(offset+used, each, s)
		used += each
	}
}

// slot adds the block of a slot.
func (m *mapper) slot(offset, units uint32, s *magazine.Slot) {
	switch {
	case m.pending[s]:
		m.put(offset, units, memorymap.Pending, s)
	case s.Magazine().IsLive(s):
		m.put(offset, units, memorymap.Live, s)
	default:
		m.put(offset, units, memorymap.CachedBlock, nil)
	}
}

// put adds units of one state.
func (m *mapper) put(offset, units uint32, state memorymap.State, s *magazine.Slot) {
	r := memorymap.Range{
		Start: int64(offset) << sizeclass.UnitShift, Bytes: int64(units) << sizeclass.UnitShift, State: state, Stream: m.stream,
	}
	if s != nil {
		r.Tag = s.Facts().Tag
		if state == memorymap.Live {
			r.Buffers = 1
		}
	}
	m.add(r)
}
