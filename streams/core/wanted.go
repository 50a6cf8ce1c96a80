package core

import (
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// wanted is how a core behaves while requests of the device wait for memory. Then nothing comes home unseen: magazines of
// large blocks are closed, those of classes are parked and serve inside turns only, lanes lease nothing, and every block that
// comes home wakes the owner.
type wanted struct {
	on      bool
	came    bool // something has, since TakeCame
	retired bool // spans were since then, of which nobody else may say so
}

// SetWanted begins or ends that.
func (c *Core) SetWanted(on bool) {
	if c.wanted.on == on {
		return
	}
	c.wanted = wanted{on: on}
	c.owner.Want(on)
	c.upset()
	if !on {
		return
	}
	c.AskLanes()
	c.evictAll()
	c.owner.Spans.ShelveAll()
	for _, m := range c.shelved { // nobody would hear of what comes home to them
		if m.Open && !m.IsInstalled() {
			c.owner.Spans.Close(m)
			if m.WholeHome() {
				c.retire(m)
			}
		}
	}
	c.shelved = nil
}

// Gather takes home all that callers handed over, with the spans that nobody uses any more.
func (c *Core) Gather() {
	arrived := c.owner.HasParked()
	c.Drain()
	if !c.wanted.on {
		return
	}
	c.retireIdle() // whose last buffer came home to a magazine that had free slots nobody says
	c.wanted.came = c.wanted.came || arrived
}

// Trial runs a search, and undo if that has not found everything: what comes home then was free before, and nobody hears of it.
// That goes for the spans, too, which the search made and nobody uses any more. It reports whether everything was found.
func (c *Core) Trial(search func() bool, undo func()) bool {
	spans, retired := c.spanUnits, c.wanted.retired
	if search() {
		return true
	}
	came := c.wanted.came
	undo()
	if c.wanted.on {
		c.retireIdle()
		came = came || c.spanUnits < spans // one of those that were there before
	}
	c.wanted.came, c.wanted.retired = came, retired
	return false
}

// Note says that memory came home of which the core does not know.
func (c *Core) Note() { c.wanted.came = c.wanted.on }

// NoteSpare says so where whole pages are free, of a core that was granted pages for a request: nobody has been told that it left
// some.
func (c *Core) NoteSpare() {
	if c.wanted.on && c.heap.PageRanges(1) > 0 {
		c.wanted.came = true
	}
}

// TakeCame reports whether anything came home since it was asked last.
func (c *Core) TakeCame() bool {
	came := c.wanted.came || c.wanted.retired
	c.wanted.came, c.wanted.retired = false, false
	return came
}

// allocScarce is allocSmall while memory is wanted: no caller finds the magazine.
func (c *Core) allocScarce(class int) (*magazine.Slot, uint32) {
	for {
		if m, taken := c.owner.Spans.TakeReady(class, 1); taken != 0 {
			var s *magazine.Slot
			pass(&m.Magazine, taken, func(slot *magazine.Slot) { s = slot })
			return s, 0
		}
		span, need := c.takeBlock(sizeclass.SpanUnits(class))
		if span == heap.None {
			return nil, need
		}
		c.spanUnits += uint64(sizeclass.SpanUnits(class))
		m := c.owner.Spans.New(class, span, c.address(span))
		c.enter(span, nil, &m.Magazine)
		c.owner.Spans.Shelve(m)
	}
}

// retract puts a block back that no caller has seen, without waking anybody: it was free before.
func (c *Core) retract(s *magazine.Slot) bool {
	if !c.wanted.on || !c.owner.Retract(s) {
		return false
	}
	c.undone++
	c.comeHome(s)
	return true
}
