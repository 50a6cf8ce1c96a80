package core

import (
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// pending is what was freed and still waits for uses on other streams: blocks that are nobody's. A block is listed with
// every stream that it waits for, under the number of the fence that covers its use there.
//
// Lists are linked by index, so that nothing is allocated once the arrays are long enough.
type pending struct {
	queues  []queue
	blocks  []block
	entries []entry
	// Heads of the lists of unused ones.
	unusedBlock, unusedEntry int32
	units                    uint64
	count                    int
	slack                    slack
	fresh                    bool // a fence may be due that was not at the last look
}

// queue is what waits for one stream, in the order of the numbers. There are few: fences that were taken and have
// not passed, those that the driver refused, and the next one.
type queue struct {
	line   *line.Line
	groups []group
	wanted uint64 // the highest number that a fence was asked for
	rest   int    // turns until it is asked for again
}

// group is what waits for one fence.
type group struct {
	number uint64
	first  int32
	count  int
	units  uint64
}

type block struct {
	slot  *magazine.Slot
	units uint32
	left  int32 // uses that have not passed
}

type entry struct{ block, next int32 }

// fenceRest is how many turns go by before a fence that could not be taken is asked for once more. Not smaller: each
// attempt is a driver call. Not larger: until then what waits for it waits for later work, too.
const fenceRest = 32

func newPending(limit *atomic.Int64, a *Allowance) pending {
	return pending{unusedBlock: none, unusedEntry: none, slack: slack{limit: limit, device: a}}
}

// none ends a list.
const none int32 = -1

// hold makes a slot that was freed pending if a use of its block has not passed. It reports whether it has.
func (c *Core) hold(s *magazine.Slot) bool {
	at := none
	if number, ok := s.User(); ok { // mostly
		if line := c.lines.At(number); line != nil {
			at = c.await(s, at, line, line.Next())
		}
		return at != none
	}
	s.TakeUses(func(number int) {
		if line := c.lines.At(number); line != nil {
			at = c.await(s, at, line, line.Next())
		}
	}, func(line *line.Line, number uint64, open bool) {
		if open {
			number = line.Next()
		}
		at = c.await(s, at, line, number)
	})
	return at != none
}

// await lists a slot's block under a number, unless that has passed. at is the block, none at first.
func (c *Core) await(s *magazine.Slot, at int32, line *line.Line, number uint64) int32 {
	if line.Passed(number) {
		return at
	}
	p := &c.pending
	if at == none {
		units := s.Magazine().UnitsOf(s)
		at = p.newBlock(s, units)
		c.awaitFence(units)
		if c.directory != nil {
			c.directory.pending[s] = true
		}
	}
	p.blocks[at].left++
	p.add(line, number, at)
	return at
}

func (p *pending) newBlock(s *magazine.Slot, units uint32) int32 {
	at := p.unusedBlock
	if at == none {
		at = int32(len(p.blocks)) //nolint:gosec // each has a slot of 64 bytes
		p.blocks = append(p.blocks, block{})
	} else {
		p.unusedBlock = p.blocks[at].left
	}
	p.blocks[at] = block{slot: s, units: units}
	p.units += uint64(units)
	p.count++
	return at
}

func (p *pending) dropBlock(at int32) {
	p.units -= uint64(p.blocks[at].units)
	p.count--
	p.blocks[at] = block{left: p.unusedBlock}
	p.unusedBlock = at
}

// add lists a block under a number.
func (p *pending) add(line *line.Line, number uint64, at int32) {
	g := p.queue(line).group(number)
	e := p.unusedEntry
	if e == none {
		e = int32(len(p.entries)) //nolint:gosec // as above
		p.entries = append(p.entries, entry{})
	} else {
		p.unusedEntry = p.entries[e].next
	}
	p.entries[e] = entry{at, g.first}
	g.first = e
	g.count++
	g.units += uint64(p.blocks[at].units)
	p.fresh = true
}

// queue is that of a stream.
func (p *pending) queue(line *line.Line) *queue {
	for i := range p.queues {
		if p.queues[i].line == line {
			return &p.queues[i]
		}
	}
	n := len(p.queues)
	if n < cap(p.queues) {
		p.queues = p.queues[:n+1] // with the groups' array of one that was here before
	} else {
		p.queues = append(p.queues, queue{})
	}
	q := &p.queues[n]
	*q = queue{line: line, groups: q.groups[:0]}
	return q
}

// group is that of a number, most often the last.
func (q *queue) group(number uint64) *group {
	i := len(q.groups)
	for i > 0 && q.groups[i-1].number > number {
		i--
	}
	if i > 0 && q.groups[i-1].number == number {
		return &q.groups[i-1]
	}
	q.groups = append(q.groups, group{})
	copy(q.groups[i+1:], q.groups[i:])
	q.groups[i] = group{number: number, first: none}
	return &q.groups[i]
}

// settle takes home what no use keeps any more, as far as anybody has looked.
func (c *Core) settle() {
	p := &c.pending
	for i := 0; i < len(p.queues); {
		q := &p.queues[i]
		n := 0
		for n < len(q.groups) && q.line.Passed(q.groups[n].number) {
			c.release(&q.groups[n])
			n++
		}
		if n > 0 {
			q.groups = q.groups[:copy(q.groups, q.groups[n:])]
		}
		if len(q.groups) > 0 {
			i++
			continue
		}
		last := len(p.queues) - 1
		p.queues[i], p.queues[last] = p.queues[last], queue{groups: q.groups}
		p.queues = p.queues[:last]
	}
}

// release strikes a fence from the blocks that wait for it.
func (c *Core) release(g *group) {
	p := &c.pending
	for e := g.first; e != none; {
		at, next := p.entries[e].block, p.entries[e].next
		p.entries[e].next, p.unusedEntry = p.unusedEntry, e
		if p.blocks[at].left--; p.blocks[at].left == 0 {
			c.Note()
			s := p.blocks[at].slot
			p.dropBlock(at)
			if c.directory != nil {
				delete(c.directory.pending, s)
			}
			if s.Magazine().Leased() {
				c.leases.Return(s)
			} else {
				c.comeHome(s)
			}
		}
		e = next
	}
	g.first = none
}

// PendingBytes are those of blocks that were freed and wait for uses on other streams.
func (c *Core) PendingBytes() int64 { return int64(c.pending.units << sizeclass.UnitShift) }

// Waits reports whether any do.
func (c *Core) Waits() bool { return len(c.pending.queues) > 0 }

// Due visits the timelines for which a fence is to be taken, with the number that it shall cover: those for which
// many blocks wait without one, or long ones, or, with all, any. Without all a number for which visit says that a fence
// will be taken is visited again only after a while.
func (c *Core) Due(all bool, visit func(line *line.Line, number uint64) bool) {
	if !c.pending.fresh && !all {
		return
	}
	c.pending.fresh = false
	pile := c.pending.slack.pileUnits()
	for i := range c.pending.queues {
		q := &c.pending.queues[i]
		number, count, units := q.owed()
		switch {
		case count == 0 || !all && count < magazine.PileSlots && units < pile:
			continue
		case number <= q.wanted && q.rest > 0 && !all:
			q.rest--
		case visit(q.line, number):
			q.wanted, q.rest = number, fenceRest
		}
		c.pending.fresh = true // until it was taken
	}
}

// Renew has the next Due look at all that waits: a fence that was taken for it may have been lost.
func (c *Core) Renew() { c.pending.fresh = c.Waits() }

// owed is what waits for a fence that was not taken, and the number that covers all of it.
func (q *queue) owed() (number uint64, count int, units uint64) {
	for i := len(q.groups) - 1; i >= 0 && q.line.Owed(q.groups[i].number); i-- {
		g := &q.groups[i]
		number, count, units = max(number, g.number), count+g.count, units+g.units
	}
	return number, count, units
}

// Scarce reports whether so much is pending that a request of that many bytes which finds no memory shall look at fences:
// else the stream may grow by them instead.
func (c *Core) Scarce(bytes int64) bool {
	return c.pending.units >= leastSlack && c.pending.units+sizeclass.Units(bytes) > c.pending.slack.units
}

// EachMissing visits the timelines for which blocks wait: with 0 where a fence was taken that has not been seen to pass, and
// else with the number that one shall cover.
func (c *Core) EachMissing(visit func(line *line.Line, number uint64)) {
	for i := range c.pending.queues {
		q := &c.pending.queues[i]
		number := uint64(0)
		if q.line.Owed(q.groups[0].number) {
			number, _, _ = q.owed()
		}
		visit(q.line, number)
	}
}

// EachLine visits the timelines for which blocks wait, with the least of their numbers.
func (c *Core) EachLine(visit func(line *line.Line, number uint64)) {
	for i := range c.pending.queues {
		q := &c.pending.queues[i]
		visit(q.line, q.groups[0].number)
	}
}

// eachPending visits the blocks that are pending.
func (p *pending) each(visit func(*block)) {
	for i := range p.blocks {
		if p.blocks[i].slot != nil {
			visit(&p.blocks[i])
		}
	}
}

// check holds the lists against each other.
func (p *pending) check() error {
	left := map[int32]int32{}
	for i := range p.queues {
		q := &p.queues[i]
		if len(q.groups) == 0 {
			return fmt.Errorf("streams: nothing is pending for %v", q.line)
		}
		for j, g := range q.groups {
			count, units := 0, uint64(0)
			for e := g.first; e != none; e = p.entries[e].next {
				left[p.entries[e].block]++
				units += uint64(p.blocks[p.entries[e].block].units)
				count++
			}
			if count == 0 || count != g.count || units != g.units || j > 0 && q.groups[j-1].number >= g.number {
				return fmt.Errorf("streams: %d blocks of %d units wait for fence %d, the books say %d of %d", count, units, g.number, g.count, g.units)
			}
		}
	}
	count, units := 0, uint64(0)
	var wrong error
	p.each(func(b *block) {
		count++
		units += uint64(b.units)
	})
	for at, n := range left {
		if b := &p.blocks[at]; b.slot == nil || b.left != n {
			wrong = fmt.Errorf("streams: pending block %d waits for %d uses, it is listed with %d", at, b.left, n)
		}
	}
	if wrong == nil && (count != p.count || units != p.units || count != len(left)) {
		wrong = fmt.Errorf("streams: %d blocks of %d units are pending, the books say %d of %d", count, units, p.count, p.units)
	}
	return wrong
}
