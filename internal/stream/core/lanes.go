package core

import (
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/stream/magazine/lane"
)

// lanes leases spans and large blocks to the lanes of the cache. All methods that take a lane are for the
// turns that its goroutine enters, or waits for.
type lanes struct {
	leases   *lane.Leases
	ranges   *ranges
	spans    *spans
	room     *room
	arrivals *arrivals
	usage    *usage
	wanted   *wanted
}

// OpenLane makes a lane of the cache ready.
func (n *lanes) OpenLane(l *lane.Lane) { n.leases.Open(l) }

// LaneAlloc serves a request that the lane's own memory did not serve, and leases what serves it to the
// lane. It returns nil where that is not worth it or not possible: the request then goes the stream's way.
// Preconditions: 0 < bytes, the units fit an uint32, and the lane was settled in this turn.
func (n *lanes) LaneAlloc(l *lane.Lane, bytes int64) (*magazine.Slot, uint64) {
	if s, word := l.Take(bytes); s != nil {
		return s, word // others had freed it
	}
	if n.usage.exact || l.Raised() != 0 || !l.Fits(bytes) || !n.leases.Admits(l, bytes) {
		return nil, 0
	}
	units := sizeclass.Units(bytes)
	if units > sizeclass.MaxUnits {
		block := n.takeBlock(l, uint32(units))
		if block == heap.None {
			return nil, 0
		}
		s := n.leases.LeaseBlock(l, block, uint32(units), n.ranges.address(block))
		n.ranges.placed(block, occupant{slot: s})
		n.usage.notePeak()
		return s, s.Word()
	}
	class := sizeclass.Of(units)
	if !n.leases.Adopt(l, class) {
		block := n.takeBlock(l, sizeclass.SpanUnits(class))
		if block == heap.None {
			return nil, 0
		}
		m := n.leases.LeaseSpan(l, class, block, n.ranges.address(block))
		n.spans.add(class, block, &m.Magazine)
	}
	n.usage.notePeak()
	return l.Take(bytes)
}

// takeBlock takes units from the heap, with what the lane and the magazines of large blocks keep where it
// must. A lane asks for no pages: the stream does, and the lane leases of them the next time.
func (n *lanes) takeBlock(l *lane.Lane, units uint32) int32 {
	if block := n.ranges.heap.Take(units); block != heap.None {
		return block
	}
	n.leases.ReleaseUnused(l)
	block, _ := n.room.take(units)
	return block
}

// SettleLane takes home what others freed of the lane's blocks, and what the lane may not keep. It reports
// whether the lane had been asked for what it does not use, and released some of it.
func (n *lanes) SettleLane(l *lane.Lane) (gaveAsked bool) {
	n.arrivals.drain()
	before := n.leases.LeasedUnits()
	why := n.leases.Settle(l)
	if n.wanted.on { // with the next call again
		n.AskLanes()
	}
	return why&lane.Asked != 0 && n.leases.LeasedUnits() < before
}

// CloseLane ends a lane. What is live of its blocks comes home when freed. It reports whether the lane had
// been asked for what it does not use.
func (n *lanes) CloseLane(l *lane.Lane) (wasAsked bool) {
	wasAsked = l.Raised()&lane.Asked != 0
	n.arrivals.drain()
	n.leases.Close(l)
	return wasAsked
}

// AskLanes makes the lanes release what they do not use at their next calls.
func (n *lanes) AskLanes() { n.leases.Raise(lane.Asked) }

// NudgeLanes makes the lanes whose blocks others freed take them home at their next calls.
func (n *lanes) NudgeLanes() {
	n.leases.Collect()
	n.leases.RaiseReturned()
}

// Lanes is the number of lanes that are open.
func (n *lanes) Lanes() int { return n.leases.Lanes() }

// LaneBytes is what the lanes have, live or not: part of LiveBytes.
func (n *lanes) LaneBytes() int64 { return int64(n.leases.LeasedUnits()) << sizeclass.UnitShift }
