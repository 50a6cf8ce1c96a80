package core

import (
	"fmt"
	"slices"

	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/watermark"
)

// inFlight lists the uses in flight of freed blocks: the pending blocks. A block is listed with every stream
// that it waits for, under the number of the fence that covers its use there. It is collected when the last
// of these fences has passed.
//
// Lists are linked by index, so that nothing is allocated once the arrays are long enough.
type inFlight struct {
	lines   *line.Lines
	home    lander
	slack   slack
	queues  []queue
	joins   []join
	blocks  []block
	entries []entry
	// Heads of the free lists.
	unusedBlock, unusedEntry int32
	units                    uint64
	count                    int
	fresh                    bool                    // a fence may have become due since the last check
	slots                    map[*magazine.Slot]bool // of the blocks; nil before the first call of has
	peakUnits                watermark.Mark          // of units
}

// join is an order that the device keeps: the stream's later work waits for the uses that a line's number
// covers.
type join struct {
	line   *line.Line
	number uint64
}

// lander collects the slot of each block whose last use has landed. It is an interface since the call of a
// method value costs two calls.
type lander interface{ landed(s *magazine.Slot) }

// fenceRest is the number of turns before a failed fence is requested again. Not smaller: each attempt is a
// driver call. Not larger: until then its blocks wait for later work, too.
const fenceRest = 32

// block is a pending block.
type block struct {
	slot  *magazine.Slot
	units uint32
	left  int32 // uses that have not passed
}

type entry struct{ block, next int32 }

// init prepares the lists.
func (f *inFlight) init(lines *line.Lines, home lander, s slack) {
	if lines == nil {
		lines = new(line.Lines)
	}
	f.lines, f.home, f.slack = lines, home, s
	f.unusedBlock, f.unusedEntry = none, none
}

// add lists a freed slot if a use of its block is in flight. It reports whether one is.
func (f *inFlight) add(s *magazine.Slot) bool {
	at := none
	if number, ok := s.User(); ok { // the usual case
		if line := f.lines.At(number); line != nil {
			at = f.await(s, at, line, line.Next())
		}
		return at != none
	}
	s.TakeUses(func(number int) {
		if line := f.lines.At(number); line != nil {
			at = f.await(s, at, line, line.Next())
		}
	}, func(line *line.Line, number uint64, open bool) {
		if open {
			number = line.Next()
		}
		at = f.await(s, at, line, number)
	})
	return at != none
}

// await lists a slot's block under a number, unless that has passed. at is the block, none at first.
func (f *inFlight) await(s *magazine.Slot, at int32, line *line.Line, number uint64) int32 {
	if line.Passed(number) {
		return at
	}
	if at == none {
		units := s.Magazine().UnitsOf(s)
		at = f.newBlock(s, units)
		f.slack.follow(units)
	}
	b := &f.blocks[at]
	b.left++
	f.list(line, number, at, b.units)
	return at
}

func (f *inFlight) newBlock(s *magazine.Slot, units uint32) int32 {
	at := f.unusedBlock
	if at == none {
		at = int32(len(f.blocks)) //nolint:gosec // each has a slot of 64 bytes
		f.blocks = append(f.blocks, block{slot: s, units: units})
	} else {
		b := &f.blocks[at]
		f.unusedBlock = b.left
		b.slot, b.units, b.left = s, units, 0
	}
	f.units += uint64(units)
	f.peakUnits.Raise(int64(f.units)) //nolint:gosec // units of one arena
	f.count++
	if f.slots != nil {
		f.slots[s] = true
	}
	return at
}

// dropBlock moves the block b with index at to the free list.
func (f *inFlight) dropBlock(b *block, at int32) {
	f.units -= uint64(b.units)
	f.count--
	if f.slots != nil {
		delete(f.slots, b.slot)
	}
	b.slot, b.left = nil, f.unusedBlock
	f.unusedBlock = at
}

// list lists a block of that many units under a number.
func (f *inFlight) list(line *line.Line, number uint64, at int32, units uint32) {
	g := f.queue(line).group(number)
	e := f.unusedEntry
	if e == none {
		e = int32(len(f.entries)) //nolint:gosec // as above
		f.entries = append(f.entries, entry{at, g.first})
	} else {
		x := &f.entries[e]
		f.unusedEntry = x.next
		*x = entry{at, g.first}
	}
	g.first = e
	g.count++
	g.units += uint64(units)
	f.fresh = true
}

// queue returns the queue of a stream.
func (f *inFlight) queue(line *line.Line) *queue {
	for i := range f.queues {
		if f.queues[i].line == line {
			return &f.queues[i]
		}
	}
	n := len(f.queues)
	if n < cap(f.queues) {
		f.queues = f.queues[:n+1] // reuses the groups' array
	} else {
		f.queues = append(f.queues, queue{})
	}
	q := &f.queues[n]
	*q = queue{line: line, groups: q.groups[:0]}
	return q
}

// land ends the waits for every fence that has passed.
func (f *inFlight) land() {
	for i := 0; i < len(f.queues); {
		q := &f.queues[i]
		n := 0
		for n < len(q.groups) && f.passed(q.line, q.groups[n].number) {
			f.pass(&q.groups[n])
			n++
		}
		if n > 0 {
			q.groups = q.groups[:copy(q.groups, q.groups[n:])]
		}
		if len(q.groups) > 0 {
			i++
			continue
		}
		last := len(f.queues) - 1
		f.queues[i], f.queues[last] = f.queues[last], queue{groups: q.groups}
		f.queues = f.queues[:last]
	}
}

// Join notes that the stream's later work waits, on the device, for the uses that the line's number covers.
// For the stream's next requests they have ended, and Join collects their memory.
func (f *inFlight) Join(line *line.Line, number uint64) {
	f.joins = slices.DeleteFunc(f.joins, func(j join) bool { return j.line == line || j.line.Passed(j.number) })
	f.joins = append(f.joins, join{line, number})
	f.land()
}

// passed reports whether the stream's later work comes after the uses that a number of a line covers: they
// have finished, or the stream waits for them.
func (f *inFlight) passed(line *line.Line, number uint64) bool {
	if line.Passed(number) {
		return true
	}
	return slices.ContainsFunc(f.joins, func(j join) bool { return j.line == line && number <= j.number })
}

// pass removes a fence from the blocks that wait for it.
func (f *inFlight) pass(g *group) {
	for e := g.first; e != none; {
		x := &f.entries[e]
		at, next := x.block, x.next
		x.next, f.unusedEntry = f.unusedEntry, e
		if b := &f.blocks[at]; b.left > 1 {
			b.left--
		} else {
			s := b.slot
			f.dropBlock(b, at)
			f.home.landed(s)
		}
		e = next
	}
	g.first = none
}

// PendingBytes returns the bytes of the pending blocks.
func (f *inFlight) PendingBytes() int64 { return int64(f.units << sizeclass.UnitShift) }

// Waits reports whether a block is pending.
func (f *inFlight) Waits() bool { return len(f.queues) > 0 }

// has reports whether a slot's block is pending. The first call visits all of them.
func (f *inFlight) has(s *magazine.Slot) bool {
	if f.slots == nil {
		f.slots = f.all()
	}
	return f.slots[s]
}

// all returns the slots whose blocks are pending.
func (f *inFlight) all() map[*magazine.Slot]bool {
	slots := map[*magazine.Slot]bool{}
	f.each(func(b *block) { slots[b.slot] = true })
	return slots
}

// Due visits the timelines that need a fence, with the number that it must cover: timelines for which many or
// long blocks wait without one, or, with all, any blocks. visit reports whether a fence will be recorded;
// without all that number is then skipped for fenceRest turns.
func (f *inFlight) Due(all bool, visit func(line *line.Line, number uint64) bool) {
	if !f.fresh && !all {
		return
	}
	f.fresh = false
	pile := f.slack.pileUnits()
	for i := range f.queues {
		q := &f.queues[i]
		number, count, units := q.owed()
		switch {
		case count == 0 || !all && count < magazine.PileSlots && units < pile:
			continue
		case number <= q.wanted && q.rest > 0 && !all:
			q.rest--
		case visit(q.line, number):
			q.wanted, q.rest = number, fenceRest
		}
		f.fresh = true // until it is recorded
	}
}

// Renew makes the next Due check everything that waits: a recorded fence may have been lost.
func (f *inFlight) Renew() { f.fresh = f.Waits() }

// Scarce reports whether so much is pending that a request of that many bytes which finds no memory should
// check fences. Otherwise the stream may grow by them.
func (f *inFlight) Scarce(bytes int64) bool {
	return f.units >= minSlack && f.units+sizeclass.Units(bytes) > f.slack.units
}

// EachMissing visits the timelines for which blocks wait: with 0 if a fence was recorded that has not passed,
// else with the number that one must cover.
func (f *inFlight) EachMissing(visit func(line *line.Line, number uint64)) {
	for i := range f.queues {
		q := &f.queues[i]
		number := uint64(0)
		if q.line.Owed(q.groups[0].number) {
			number, _, _ = q.owed()
		}
		visit(q.line, number)
	}
}

// EachLine visits the timelines for which blocks wait, with the lowest of their numbers.
func (f *inFlight) EachLine(visit func(line *line.Line, number uint64)) {
	for i := range f.queues {
		q := &f.queues[i]
		visit(q.line, q.groups[0].number)
	}
}

// tick begins a tick: the slack follows the frees of the last.
func (f *inFlight) tick() {
	if f.slack.tick() {
		f.fresh = true
	}
}

// Press removes the slack for sharing fences until the next tick.
func (f *inFlight) Press() {
	if f.slack.press() {
		f.fresh = true
	}
}

// endSlack removes it for good.
func (f *inFlight) endSlack() {
	if f.slack.end() {
		f.fresh = true
	}
}

// each visits the pending blocks.
func (f *inFlight) each(visit func(*block)) {
	for i := range f.blocks {
		if f.blocks[i].slot != nil {
			visit(&f.blocks[i])
		}
	}
}

// check compares the lists with each other.
func (f *inFlight) check() error {
	left := map[int32]int32{}
	for i := range f.queues {
		q := &f.queues[i]
		if len(q.groups) == 0 {
			return fmt.Errorf("streams: nothing is pending for %v", q.line)
		}
		for j, g := range q.groups {
			count, units := 0, uint64(0)
			for e := g.first; e != none; e = f.entries[e].next {
				left[f.entries[e].block]++
				units += uint64(f.blocks[f.entries[e].block].units)
				count++
			}
			if count == 0 || count != g.count || units != g.units || j > 0 && q.groups[j-1].number >= g.number {
				return fmt.Errorf("streams: %d blocks of %d units wait for fence %d, the books say %d of %d",
					count, units, g.number, g.count, g.units)
			}
		}
	}
	count, units := 0, uint64(0)
	var wrong error
	f.each(func(b *block) {
		count++
		units += uint64(b.units)
	})
	for at, n := range left {
		if b := &f.blocks[at]; b.slot == nil || b.left != n {
			wrong = fmt.Errorf("streams: pending block %d waits for %d uses, it is listed with %d", at, b.left, n)
		}
	}
	if wrong == nil && (count != f.count || units != f.units || count != len(left)) {
		wrong = fmt.Errorf("streams: %d blocks of %d units are pending, the books say %d of %d", count, units, f.count, f.units)
	}
	return wrong
}
