package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
	"github.com/go-vram/vram/streams/tape"
)

// groundRanges bounds the ranges that a plan is packed into, the longest. Not more: packing looks at all of them,
// and short ones hold little.
const groundRanges = 64

// tapeBlock is the Block of a slot whose memory is a place of the tape, from the place's index; no block of the heap
// has such a number. It is its own inverse.
func tapeBlock(index int32) int32 { return heap.None - 1 - index }

// taped is what a core has of a tape.
type taped struct {
	tapeOn      bool       // as the settings have it
	tape        *tape.Tape // nil: off, or the stream has not been at work for a tick
	ground      []int32    // the heap's blocks that the plan lies on, as Ground lists them
	groundUnits uint64
	tapeUnits   uint64       // of them in use
	placed      []placed     // by index of the plan
	marks       []uint32     // by block of the heap: the position that the tape knows it by; 0: none
	job         *tape.Packer // for whoever has time
}

// placed is what lies at a place of the plan.
type placed struct {
	slot *magazine.Slot // nil: nothing
	mark uint32
}

// setTape lets the stream learn from the next tick on, or ends to play.
func (c *Core) setTape(on bool) {
	c.tapeOn = on
	if !on && c.tape != nil {
		c.leaveGround()
		c.tape, c.marks = nil, nil
	}
}

// wakeTape begins to learn, at a tick. Not before the stream has been at work: plans are packed at ticks, and a program that is
// over by the first has watched its requests for nothing.
func (c *Core) wakeTape() {
	if c.tapeOn && c.tape == nil && c.misses.Turns > 0 {
		c.openTape()
	}
}

func (c *Core) openTape() {
	c.tape = &tape.Tape{}
	c.upset() // it must see all
}

// allocTaped serves a request from the plan, or returns nil.
func (c *Core) allocTaped(units uint32) *magazine.Slot {
	index, first, ok := c.tape.Place(units)
	if c.tape.Want() != tape.WantNothing {
		index, first, ok = c.heed()
	}
	if !ok {
		return nil
	}
	s := c.owner.Loose.Take()
	at := int32(index) //nolint:gosec // a plan has fewer entries
	s.Block, s.Units = tapeBlock(at), units
	s.SetAddress(c.addressOf(first))
	c.placed[at] = placed{s, c.tape.Served(units)}
	c.tapeUnits += uint64(units)
	c.enterPlace(at, first, units)
	return s
}

// heed does what the tape wants.
func (c *Core) heed() (index, first uint32, ok bool) {
	switch c.tape.Want() {
	case tape.WantGround:
		c.retireIdle()
		c.job = c.tape.Survey(c.coming())
	case tape.WantClaim:
		c.retireIdle() // as when the free ranges were looked at
		c.groundUnits = 0
		c.placed = slices.Grow(c.placed[:0], c.tape.Length())[:c.tape.Length()]
		index, first, ok = c.tape.Begin(c.claim(c.tape.Ground()))
		if c.missesTooMuch() {
			c.YieldPlan() // the place of the request at hand has no slot yet
			return 0, 0, false
		}
		return index, first, ok
	case tape.WantEnd:
		c.leaveGround()
		c.tape.Drop()
		c.heedRest(false)
	case tape.WantNothing:
	}
	return 0, 0, false
}

// missesTooMuch reports whether what is missing of the ground is more than what is free besides: that is where the requests go
// whose places are not there yet.
func (c *Core) missesTooMuch() bool {
	var units uint64
	for _, m := range c.tape.Missing() {
		units += uint64(m.Units)
	}
	return units > c.heap.FreeUnits()
}

// passTape tells the tape of a request that was served the ordinary way. When it begins to learn, it must see all:
// what magazines serve it does not.
func (c *Core) passTape(s *magazine.Slot) {
	rested := c.tape.Rests()
	if mark := c.tape.Served(s.Units); mark != 0 {
		c.setMark(s.Block, mark)
	}
	c.heedRest(rested)
	if c.recent.oldest != nil && c.tape.Knows() {
		c.evictAll()
	}
}

// heedRest lets callers take blocks back, once the stream is calm, while the tape rests, and no longer.
func (c *Core) heedRest(rested bool) {
	switch rests := c.tape.Rests(); {
	case rests && !rested:
		c.calmAt = c.misses.Turns
	case rested && !rests:
		c.upset()
	}
}

// evictAll closes the magazines of large blocks.
func (c *Core) evictAll() {
	for c.recent.oldest != nil {
		c.evict(c.recent.oldest)
	}
}

// coming are the longest ranges that are free or will be within a step.
func (c *Core) coming() []tape.Range {
	var ranges []tape.Range
	var at tape.Range
	end := func() {
		if at.Units >= c.pageUnits {
			ranges = append(ranges, at)
		}
		at.Units = 0
	}
	c.heap.EachRun(func(block int32, s heap.State) {
		first, units := c.heap.Offset(block), c.heap.Units(block)
		if at.End() != first {
			end()
		}
		switch {
		case s != heap.Free && (int(block) >= len(c.marks) || !c.tape.Passing(c.marks[block])):
			end()
		case at.Units == 0:
			at = tape.Range{First: first, Units: units}
		default:
			at.Units += units
		}
	})
	end()
	slices.SortFunc(ranges, func(a, b tape.Range) int { return cmp.Compare(b.Units, a.Units) })
	return ranges[:min(len(ranges), groundRanges)]
}

// claim takes what is free of those ranges, in rising order, for the ground, and returns the rest: it comes when the
// blocks that are there are freed.
func (c *Core) claim(ranges []tape.Range) (missing []tape.Range) {
	var free []tape.Range
	c.heap.EachFree(1, func(offset, units uint32) bool {
		free = append(free, tape.Range{First: offset, Units: units})
		return true
	})
	slices.SortFunc(free, func(a, b tape.Range) int { return cmp.Compare(a.First, b.First) })
	for _, r := range ranges {
		for len(free) > 0 && free[0].End() <= r.First {
			free = free[1:]
		}
		for at := r.First; at < r.End(); {
			next := tape.Range{First: r.End()}
			if len(free) > 0 && free[0].First < r.End() {
				first := max(at, free[0].First)
				next = tape.Range{First: first, Units: min(r.End(), free[0].End()) - first}
			}
			if next.First > at {
				missing = append(missing, tape.Range{First: at, Units: next.First - at})
			}
			if next.Units > 0 {
				c.addGround(c.heap.TakeAt(next.First, next.Units))
			}
			if at = next.End(); at == free0End(free) {
				free = free[1:]
			}
		}
	}
	return missing
}

// free0End is where the first of the ranges ends; 0 if there is none.
func free0End(free []tape.Range) uint32 {
	if len(free) == 0 {
		return 0
	}
	return free[0].End()
}

// addGround adds a block to the ground, as one with those that it touches.
func (c *Core) addGround(block int32) {
	c.groundUnits += uint64(c.heap.Units(block))
	at, _ := slices.BinarySearchFunc(c.ground, c.heap.Offset(block), func(b int32, first uint32) int {
		return cmp.Compare(c.heap.Offset(b), first)
	})
	if at > 0 && c.heap.Offset(c.ground[at-1])+c.heap.Units(c.ground[at-1]) == c.heap.Offset(block) {
		at--
		c.heap.Join(c.ground[at], block)
	} else {
		c.ground = slices.Insert(c.ground, at, block)
	}
	if at+1 < len(c.ground) && c.heap.Offset(c.ground[at])+c.heap.Units(c.ground[at]) == c.heap.Offset(c.ground[at+1]) {
		c.heap.Join(c.ground[at], c.ground[at+1])
		c.ground = slices.Delete(c.ground, at+1, at+2)
	}
}

// giveBlock makes a block free while a plan is played. What of it the ground misses is the ground's.
func (c *Core) giveBlock(block int32) {
	if len(c.tape.Missing()) == 0 {
		c.giveFree(block)
		return
	}
	given := tape.Range{First: c.heap.Offset(block), Units: c.heap.Units(block)}
	c.giveFree(block)
	for _, m := range slices.Clone(c.tape.Missing()) {
		first, end := max(m.First, given.First), min(m.End(), given.End())
		if first >= end {
			continue
		}
		if part := c.heap.TakeAt(first, end-first); part != heap.None {
			c.addGround(part)
			c.tape.Came(tape.Range{First: first, Units: end - first})
		}
	}
}

// setMark names the request that a block serves.
func (c *Core) setMark(block int32, mark uint32) {
	if missing := int(block) + 1 - len(c.marks); missing > 0 {
		c.marks = append(c.marks, make([]uint32, missing)...)
	}
	c.marks[block] = mark
}

// endMark tells the tape that a block is about to be free.
func (c *Core) endMark(s *magazine.Slot) {
	if int(s.Block) >= len(c.marks) {
		return
	}
	if mark := c.marks[s.Block]; mark != 0 {
		c.marks[s.Block] = 0
		c.tape.Ended(mark, s.Units)
	}
}

// giveTaped is giveLarge with a tape.
func (c *Core) giveTaped(s *magazine.Slot) {
	if s.Block < heap.None {
		c.leaveTape(s)
		return
	}
	c.endMark(s)
	c.home(s.Block)
}

// leaveTape takes home a block that has a place of the tape.
func (c *Core) leaveTape(s *magazine.Slot) {
	index := tapeBlock(s.Block)
	c.tapeUnits -= uint64(s.Units)
	if mark := c.placed[index].mark; mark != 0 {
		c.tape.Ended(mark, s.Units)
	}
	c.placed[index] = placed{}
	c.tape.Leave(uint32(index)) //nolint:gosec // it is one of the plan's
	if c.directory != nil {
		c.directory.places.Remove(index)
	}
}

// YieldPlan gives the memory of the plan that is played back to the free ranges, until the plan begins again. It
// reports whether there was any.
func (c *Core) YieldPlan() bool {
	if c.tape == nil || c.tape.State() < tape.Playing {
		return false
	}
	c.tape.Yield() // before the blocks come home: none of them is the ground's any more
	c.leaveGround()
	return true
}

// leaveGround makes what is in use of the plan's memory ordinary blocks, and the rest free.
func (c *Core) leaveGround() {
	var live []*magazine.Slot
	for _, p := range c.placed {
		if p.slot != nil {
			live = append(live, p.slot)
		}
	}
	first := func(s *magazine.Slot) uint32 { return c.tape.First(uint32(tapeBlock(s.Block))) } //nolint:gosec // one of the plan's
	slices.SortFunc(live, func(a, b *magazine.Slot) int { return cmp.Compare(first(a), first(b)) })
	for _, block := range c.ground {
		end := c.heap.Offset(block) + c.heap.Units(block)
		for len(live) > 0 && first(live[0]) < end {
			s := live[0]
			live = live[1:]
			if before := first(s) - c.heap.Offset(block); before > 0 {
				rest := c.heap.Split(block, before)
				c.giveGround(block)
				block = rest
			}
			rest := heap.None
			if c.heap.Units(block) > s.Units {
				rest = c.heap.Split(block, s.Units)
			}
			c.setMark(block, c.placed[tapeBlock(s.Block)].mark)
			c.enter(block, s, nil)
			s.Block, block = block, rest
		}
		if block != heap.None {
			c.giveGround(block)
		}
	}
	if c.directory != nil {
		c.directory.places.Reset()
	}
	clear(c.placed)
	c.placed, c.ground = c.placed[:0], c.ground[:0]
	c.groundUnits, c.tapeUnits, c.job = 0, 0, nil
}

// giveGround makes a block free that served the plan and nobody else: the directory does not have it.
func (c *Core) giveGround(block int32) {
	if c.cover != nil {
		c.cameHome(block)
	}
	c.heap.Give(block)
}

// PlanJob is a plan to be packed outside the turn, once. The result comes back by Planned.
func (c *Core) PlanJob() *tape.Packer {
	job := c.job
	c.job = nil
	return job
}

// Planned takes a plan that was packed.
func (c *Core) Planned(job *tape.Packer) {
	if c.tape != nil {
		c.tape.Packed(job)
	}
}

// Plan is the step that the tape knows; nil if there is none.
func (c *Core) Plan() tape.Step {
	if c.tape == nil {
		return nil
	}
	return c.tape.Step()
}

// Teach gives the tape a step. It reports whether the settings allow one.
func (c *Core) Teach(step tape.Step) bool {
	if !c.tapeOn {
		return false
	}
	if c.tape == nil {
		c.openTape()
	}
	rested := c.tape.Rests()
	c.YieldPlan()
	c.job = nil
	c.tape.Teach(step)
	c.heedRest(rested)
	return true
}

// checkTape holds the places against the slots, which have so many units there.
func (c *Core) checkTape(units uint64) error {
	if units != c.tapeUnits {
		return fmt.Errorf("streams: places of %d units in use, the books say %d", units, c.tapeUnits)
	}
	for index, p := range c.placed {
		if p.slot != nil && p.slot.Block != tapeBlock(int32(index)) { //nolint:gosec // a plan has fewer entries
			return fmt.Errorf("streams: place %d of the tape has another's slot", index)
		}
	}
	if c.tape == nil {
		return nil
	}
	if err := c.tape.Check(); err != nil {
		return fmt.Errorf("streams: %w", err)
	}
	return nil
}

// TapeSnapshot is what a tape is at and has done. Requests are those that took a turn, over 64 KiB.
type TapeSnapshot struct {
	State         tape.State
	PlanRequests  int    // length of the plan that is played
	PlanBytes     int64  // of memory that it lies on
	PlanPeakBytes int64  // of that in use at once, if the step repeats exactly
	RequestCount  uint64 // that the tape saw
	ExpectedCount uint64 // of them those that came where the plan had them
	PlacedCount   uint64 // of them those that got their place
	BlockedCount  uint64 // of them those whose place was still taken
	PlanCount     uint64 // plans that were begun
}

func (c *Core) tapeSnapshot() TapeSnapshot {
	if c.tape == nil {
		return TapeSnapshot{}
	}
	n := c.tape.Counts()
	s := TapeSnapshot{
		State: c.tape.State(), RequestCount: n.Requests, ExpectedCount: n.Expected, PlacedCount: n.Placed,
		BlockedCount: n.Blocked, PlanCount: n.Plans,
	}
	if len(c.ground) > 0 {
		s.PlanRequests, s.PlanBytes = c.tape.Length(), int64(c.groundUnits)<<sizeclass.UnitShift
		s.PlanPeakBytes = int64(c.tape.PeakUnits()) << sizeclass.UnitShift //nolint:gosec // fewer than the ground's
	}
	return s
}
