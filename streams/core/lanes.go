package core

import (
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// lanes leases spans and large blocks to the lanes of the cache. All methods that take a lane are for the
// turns that its goroutine enters, or waits for.
type lanes struct {
	owner    *magazine.Owner
	ranges   *ranges
	spans    *spans
	room     *room
	arrivals *arrivals
	usage    *usage
	wanted   *wanted
}

// OpenLane makes a lane of the cache ready.
func (n *lanes) OpenLane(l *magazine.Lane) { n.owner.OpenLane(l) }

// LaneAlloc serves a request that the lane's own memory did not serve, and leases what serves it to the
// lane. It returns nil where that is not worth it or not possible: the request then goes the stream's way.
// Preconditions: 0 < bytes, the units fit an uint32, and the lane was settled in this turn.
func (n *lanes) LaneAlloc(l *magazine.Lane, bytes int64) (*magazine.Slot, uint64) {
	if s, word := l.Take(bytes); s != nil {
		return s, word // others had freed it
	}
	if n.usage.exact || l.Raised() != 0 || !l.Fits(bytes) || !n.owner.Admits(l, bytes, n.spans.release) {
		return nil, 0
	}
	units := sizeclass.Units(bytes)
	if units > sizeclass.MaxUnits {
		block := n.takeBlock(l, uint32(units))
		if block == heap.None {
			return nil, 0
		}
		s := n.owner.LeaseBlock(l, block, uint32(units), n.ranges.address(block))
		n.ranges.placed(block, occupant{slot: s})
		n.usage.notePeak()
		return s, s.Word()
	}
	class := sizeclass.Of(units)
	if !n.owner.Adopt(l, class) {
		block := n.takeBlock(l, sizeclass.SpanUnits(class))
		if block == heap.None {
			return nil, 0
		}
		n.spans.lease(l, class, block)
	}
	n.usage.notePeak()
	return l.Take(bytes)
}

// takeBlock takes units from the heap, with what the lane and the magazines of large blocks keep where it
// must. A lane asks for no pages: the stream does, and the lane leases of them the next time.
func (n *lanes) takeBlock(l *magazine.Lane, units uint32) int32 {
	if block := n.ranges.heap.Take(units); block != heap.None {
		return block
	}
	n.owner.GiveUp(l, n.spans.release)
	block, _ := n.room.take(units)
	return block
}

// SettleLane takes home what others freed of the lane's blocks, and what the lane may not keep. It reports
// whether the lane had been asked for what it does not use, and released some of it.
func (n *lanes) SettleLane(l *magazine.Lane) (gaveAsked bool) {
	n.arrivals.drain()
	before := n.owner.LeasedUnits()
	why := n.owner.Settle(l, n.spans.release)
	if n.wanted.on { // with the next call again
		n.AskLanes()
	}
	return why&magazine.Asked != 0 && n.owner.LeasedUnits() < before
}

// CloseLane ends a lane. What is live of its blocks comes home when freed. It reports whether the lane had
// been asked for what it does not use.
func (n *lanes) CloseLane(l *magazine.Lane) (wasAsked bool) {
	wasAsked = l.Raised()&magazine.Asked != 0
	n.arrivals.drain()
	n.owner.CloseLane(l, n.spans.release)
	return wasAsked
}

// AskLanes makes the lanes release what they do not use at their next calls.
func (n *lanes) AskLanes() { n.owner.Raise(magazine.Asked) }

// NudgeLanes makes the lanes whose blocks others freed take them home at their next calls.
func (n *lanes) NudgeLanes() {
	n.spans.collect()
	n.owner.RaiseReturned()
}

// Lanes is the number of lanes that are open.
func (n *lanes) Lanes() int { return n.owner.Lanes() }

// LaneBytes is what the lanes have, live or not: part of LiveBytes.
func (n *lanes) LaneBytes() int64 { return int64(n.owner.LeasedUnits()) << sizeclass.UnitShift }
