package core

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// slack bounds the memory that may be pending so that many blocks share a fence. It follows the units that
// were freed since the last tick, so that a tick records at most fencesPerTick fences for long blocks; a
// program that frees little has the minimum. A tick halves the unused part. A reclaim request of the pool
// removes all beyond the minimum until the next tick.
type slack struct {
	limit   *atomic.Int64          // of the device, bytes
	device  *Allowance             // nil: nothing beyond the minimum
	setPile func(pileUnits uint64) // called with pileUnits after each change
	units   uint64                 // that may be pending before a request checks fences, if more than the minimum
	sum     uint64                 // units that became pending since the last tick
	pressed bool                   // since the last tick
}

const (
	// minSlack is how many units must be pending before a miss checks fences. Not fewer: a check is two
	// driver calls, and should free more than one block. Not more: the pool may have to grow by the
	// unchecked blocks.
	minSlack = 8 << 20 >> sizeclass.UnitShift
	// fencesPerTick is how many fences a stream may record in a tick because of the length of the waiting blocks. Not
	// more: at 3 µs for a fence and its check, and ten ticks a second, they are a percent of a processor. Not
	// fewer: with 100, real traces with recorded buffers held up to 14 % more than without slack, with 400 no
	// more in the mean.
	fencesPerTick = 400
	// slackShare is the divisor of the device's limit for the memory that all streams together may have pending beyond
	// the minimum of each. Not a smaller part: blocks of 128 MiB could not share a fence by the dozen on a
	// large device. Not a larger one: the device holds that memory unused, though only while terabytes are
	// freed in a second.
	slackShare = 16
)

// Allowance sums how much the streams of a device may have pending beyond the minimum. The zero value is
// ready. It is safe for concurrent use.
type Allowance struct{ units atomic.Int64 }

// take takes as many of the units as a device with that limit has left.
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

// pileUnits returns how much may wait for a fence that was not recorded. It leaves a part of the slack for
// frees until the fence has passed.
func (s *slack) pileUnits() uint64 { return max(magazine.PileUnits, s.units-s.units/4) }

// follow counts a block that becomes pending.
func (s *slack) follow(units uint32) {
	s.sum += uint64(units)
	// Not each time: other streams write the device's word, too.
	if want := s.sum / fencesPerTick; want > minSlack && want > s.units+s.units/8 && !s.pressed && s.device != nil {
		if taken := s.device.take(want-s.units, s.limit.Load()); taken > 0 {
			s.units += taken
			s.setPile(s.pileUnits())
		}
	}
}

// tick begins a tick. It reports whether the slack decreased.
func (s *slack) tick() (less bool) {
	less = s.tighten(max(s.units/2, min(s.units, s.sum/fencesPerTick)))
	s.sum, s.pressed = 0, false
	return less
}

// press removes all beyond the minimum until the next tick. It reports whether the slack decreased.
func (s *slack) press() (less bool) {
	s.pressed = true
	return s.tighten(0)
}

// end removes all beyond the minimum for good. It reports whether the slack decreased.
func (s *slack) end() (less bool) {
	less = s.tighten(0)
	s.device = nil
	return less
}

// tighten returns all but that many units to the device. It reports whether there was any.
func (s *slack) tighten(units uint64) (less bool) {
	if units < minSlack {
		units = 0
	}
	if units >= s.units {
		return false
	}
	s.device.give(s.units - units)
	s.units = units
	s.setPile(s.pileUnits())
	return true
}
