package core

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// slack is what may wait for uses on other streams, out of use, so that many blocks share a fence. It follows what was
// freed since the last tick, so that fences for long blocks are at most fencesPerTick in a tick: a program that frees
// little has the least. A tick halves what is not used, and a wish of the pool's ends all beyond the least until the
// next tick.
type slack struct {
	limit   *atomic.Int64 // of the device, bytes
	device  *Allowance    // nil: nothing beyond the least
	units   uint64        // what may be pending before a request looks at fences, if it is more than the least
	sum     uint64        // units that became pending since the last tick
	pressed bool          // since the last tick
}

const (
	// leastSlack is what must be pending for a miss to look at fences. Not less: a look is two driver calls, and is to
	// bring back more than one block. Not more: the pool may have to grow for what is not looked for.
	leastSlack = 8 << 20 >> sizeclass.UnitShift
	// fencesPerTick is how many fences a stream may take in a tick because of the length of what waits. Not
	// more: at 3 µs for a fence and its look, and ten ticks a second, they are a percent of a processor. Not
	// fewer: with 100, real traces with recorded buffers held up to 14 % more than without slack, with 400 no more in the mean.
	fencesPerTick = 400
	// slackShare is the part of the device's limit that all streams together may leave waiting beyond the least of each.
	// Not smaller: blocks of 128 MiB could not share a fence by the dozen on a large device. Not larger: it is memory
	// that the device holds and nobody has, though only while terabytes are freed in a second.
	slackShare = 16
)

// Allowance is what the streams of a device have been allowed to leave waiting for fences. The zero value is ready. Any
// number of goroutines may use it.
type Allowance struct{ units atomic.Int64 }

// take takes as much of the units as a device with that limit has left.
func (a *Allowance) take(units uint64, limitBytes int64) (taken uint64) {
	for {
		lent := a.units.Load()
		left := max(0, limitBytes>>sizeclass.UnitShift/slackShare-lent)
		taken = min(units, uint64(left))                                   //nolint:gosec // not negative
		if taken == 0 || a.units.CompareAndSwap(lent, lent+int64(taken)) { //nolint:gosec // no more than is left
			return taken
		}
	}
}

func (a *Allowance) give(units uint64) {
	if units > 0 {
		a.units.Add(-int64(units)) //nolint:gosec // they were taken
	}
}

// mostUnits is what may be pending before a request that finds no memory looks at fences.
func (s *slack) mostUnits() uint64 { return max(leastSlack, s.units) }

// pileUnits is what may wait for a fence that was not taken. A part of what may be pending is left for what is freed
// until the fence has passed.
func (s *slack) pileUnits() uint64 { return max(magazine.PileUnits, s.units-s.units/4) }

// awaitFence counts a block that becomes pending.
func (c *Core) awaitFence(units uint32) {
	s := &c.pending.slack
	s.sum += uint64(units)
	// Not each time: others write the device's word, too.
	if want := s.sum / fencesPerTick; want > leastSlack && want > s.units+s.units/8 && !s.pressed && s.device != nil {
		if taken := s.device.take(want-s.units, s.limit.Load()); taken > 0 {
			s.units += taken
			c.owner.SetPile(s.pileUnits())
		}
	}
}

// slacken begins a tick.
func (c *Core) slacken() {
	s := &c.pending.slack
	c.tighten(max(s.units/2, min(s.units, s.sum/fencesPerTick)))
	s.sum, s.pressed = 0, false
}

// tighten gives up what is more than that.
func (c *Core) tighten(units uint64) {
	s := &c.pending.slack
	if units < leastSlack {
		units = 0
	}
	if units < s.units {
		s.device.give(s.units - units)
		s.units = units
		c.owner.SetPile(s.pileUnits())
		c.pending.fresh = true
	}
}

// Press ends, until the next tick, what the stream leaves waiting for fences so that many blocks share one.
func (c *Core) Press() {
	c.tighten(0)
	c.pending.slack.pressed = true
}

// endSlack gives up all beyond the least for good.
func (c *Core) endSlack() {
	c.tighten(0)
	c.pending.slack.device = nil
}
