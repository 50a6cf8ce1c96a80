package core

import (
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// arrivals collects freed slots: blocks return to the heap, or to their closed magazine. Blocks that
// other streams still use become pending first.
type arrivals struct {
	owner     *magazine.Owner
	ranges    *ranges
	retention *retention
	spans     *spans
	inFlight  *inFlight
	wanted    *wanted
}

// Drain collects all that callers freed since the last turn. An exact sum of live bytes no longer has it then.
func (c *Core) Drain() {
	c.arrivals.drain()
	if c.usage.exact {
		c.usage.lower()
	}
}

func (a *arrivals) drain() {
	a.takeHome(a.owner.Freed(), 0)
	a.sortUsed(false)
}

// sortUsed books the freed slots that other streams use. If pile is set it does so only if there is a pile of
// them. It reports whether there was any.
func (a *arrivals) sortUsed(pile bool) bool {
	used := a.owner.Used(pile)
	if used == nil {
		return false
	}
	a.takeHome(used, 0)
	return true
}

// takeHome books a list of freed slots, and lands the uses whose fences have passed. It reports whether a
// large block of that many units was in the list.
func (a *arrivals) takeHome(s *magazine.Slot, units uint32) (cameBack bool) {
	a.wanted.came = a.wanted.came || s != nil && a.wanted.on
	for r := a.ranges; s != nil; {
		next, plain := a.owner.Pass(s)
		switch {
		case plain != 0: // most of them
			cameBack = cameBack || plain == units
			r.notifyFreed(s.Block) // vacate, inlined
			r.heap.Give(s.Block)
			s.Block = heap.None
			a.owner.Loose.Put(s)
		case s.Flags()&magazine.Announced != 0 && a.inFlight.add(s):
		default:
			cameBack = cameBack || s.Magazine().Span() == nil && s.Units == units
			a.comeHome(s)
		}
		s = next
	}
	if a.inFlight.Waits() {
		a.inFlight.land()
	}
	return cameBack
}

// comeHome books a freed slot that no stream uses.
func (a *arrivals) comeHome(s *magazine.Slot) {
	span := s.Magazine().Span()
	if span == nil {
		a.ranges.vacate(s)
		a.retention.left(s)
	}
	if a.owner.Collect(s) {
		a.spans.retire(span)
	}
}

// landed books a slot whose block was pending.
func (a *arrivals) landed(s *magazine.Slot) {
	a.wanted.Note()
	a.comeHome(s)
}

// retract puts back a block that no caller has seen, without waking the owner: the block was free before. It
// reports whether it could.
func (a *arrivals) retract(s *magazine.Slot) bool {
	if !a.wanted.on || !a.owner.Retract(s) {
		return false
	}
	a.comeHome(s)
	return true
}
