package core

import (
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
	"github.com/go-vram/vram/streams/magazine/lane"
)

// OpenLane makes a lane of the cache ready. All methods that take a lane are for the turns that its
// goroutine enters, or waits for.
func (c *Core) OpenLane(l *lane.Lane) { c.leases.Open(l) }

// LaneAlloc serves a request that the lane's own memory did not serve, and leases what serves it to the
// lane. It returns nil where that is not worth it or not possible: the request then goes the stream's way.
// Preconditions: 0 < bytes, the units fit an uint32, and the lane was settled in this turn.
func (c *Core) LaneAlloc(l *lane.Lane, bytes int64) (*magazine.Slot, uint64) {
	if s, word := l.Take(bytes); s != nil {
		return s, word // others had freed it
	}
	if c.counting || l.Raised() != 0 || !l.Fits(bytes) || !c.leases.Admits(l, bytes) {
		return nil, 0
	}
	units := sizeclass.Units(bytes)
	if units > sizeclass.MaxUnits {
		block := c.leaseBlock(l, uint32(units))
		if block == heap.None {
			return nil, 0
		}
		s := c.leases.LeaseBlock(l, block, uint32(units), c.address(block))
		c.enter(block, s, nil)
		c.notePeak()
		return s, s.Word()
	}
	class := sizeclass.Of(units)
	if !c.leases.Adopt(l, class) {
		span := c.leaseBlock(l, sizeclass.SpanUnits(class))
		if span == heap.None {
			return nil, 0
		}
		c.spanUnits += uint64(sizeclass.SpanUnits(class))
		c.enter(span, nil, &c.leases.LeaseSpan(l, class, span, c.address(span)).Magazine)
	}
	c.notePeak()
	return l.Take(bytes)
}

// leaseBlock takes units from the heap, with what the lane keeps and what magazines of large blocks keep
// where it must. A lane asks for no pages: the stream does, and the lane leases of them the next time.
func (c *Core) leaseBlock(l *lane.Lane, units uint32) int32 {
	if block := c.heap.Take(units); block != heap.None {
		return block
	}
	c.leases.ReleaseUnused(l)
	block, _ := c.takeBlock(units)
	return block
}

// SettleLane takes home what others freed of the lane's blocks and gives back what it may not keep. It
// reports whether the lane had been asked for what it does not use, and gave some of it back.
func (c *Core) SettleLane(l *lane.Lane) (gaveAsked bool) {
	c.drain()
	before := c.leases.LeasedUnits()
	why := c.leases.Settle(l)
	if c.wanted.on { // with the next call again
		c.AskLanes()
	}
	return why&lane.Asked != 0 && c.leases.LeasedUnits() < before
}

// CloseLane ends a lane. What is live of its blocks comes home when freed. It reports whether the lane had
// been asked for what it does not use.
func (c *Core) CloseLane(l *lane.Lane) (wasAsked bool) {
	wasAsked = l.Raised()&lane.Asked != 0
	c.drain()
	c.leases.Close(l)
	return wasAsked
}

// AskLanes makes the lanes give back what they do not use at their next calls.
func (c *Core) AskLanes() { c.leases.Raise(lane.Asked) }

// NudgeLanes makes the lanes whose blocks others freed take them home at their next calls.
func (c *Core) NudgeLanes() {
	c.leases.Collect()
	c.leases.RaiseReturned()
}

// Lanes is the number of lanes that are open.
func (c *Core) Lanes() int { return c.leases.Lanes() }

// LaneBytes is what the lanes have, live or not: part of LiveBytes.
func (c *Core) LaneBytes() int64 { return int64(c.leases.LeasedUnits()) << sizeclass.UnitShift }

// give takes a block of a lane's back.
func (c *Core) give(block, class int32) {
	c.Note()
	if class >= 0 {
		c.spanUnits -= uint64(sizeclass.SpanUnits(int(class)))
	}
	c.giveFree(block)
}
