package core

import (
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/watermark"
)

// usage counts the memory in use: blocks that callers were given, pending ones, and parts of batches (see Parts). The
// statistics count only given blocks; decisions about magazines and sweeps count everything in use.
type usage struct {
	ranges       *ranges
	waitingUnits uint64 // of requests that wait for the pool
	parts        *Parts
	inFlight     *inFlight
	peakUnits    uint64 // most in use, ever
	quiescence   quiescence

	exact          bool   // count exactly, and publish
	gauge          *Gauge // nil: no sum is kept
	publishedBytes int64
	probing        bool // the search puts its block back: see Probe

	// After the fields that each miss uses.
	givenPeak watermark.Mark // most units given
}

// notePeak records an allocation that a caller was given.
func (u *usage) notePeak() {
	u.noteUse()
	u.noteGiven()
}

// noteUse records the memory in use, for the decisions.
func (u *usage) noteUse() { u.raise(u.ranges.usedUnits()) }

// noteGiven records the memory that callers have, for the statistics.
func (u *usage) noteGiven() { u.raiseGiven(u.givenUnits()) }

func (u *usage) raise(usedUnits uint64) {
	u.peakUnits = max(u.peakUnits, usedUnits)
	u.quiescence.arm(usedUnits, u.peakUnits)
}

func (u *usage) raiseGiven(givenUnits uint64) {
	if u.probing {
		return
	}
	u.givenPeak.Raise(int64(givenUnits)) //nolint:gosec // units of one arena
	if u.exact {
		u.publish()
	}
}

// resetPeak restarts the peak of the statistics at that many units.
func (u *usage) resetPeak(givenUnits uint64) {
	u.givenPeak.Reset(int64(givenUnits)) //nolint:gosec // units of one arena
}

// beginScope begins a scope of the peak at that many units.
func (u *usage) beginScope(number, givenUnits uint64) {
	u.givenPeak.Begin(number, int64(givenUnits)) //nolint:gosec // units of one arena
}

// quiescent reports whether less is in use than an eighth of the peak.
func (u *usage) quiescent() bool { return u.ranges.usedUnits() < u.peakUnits/quiescentShare }

// publish updates the gauge with the live bytes.
func (u *usage) publish() {
	if u.gauge == nil {
		return
	}
	var used int64
	if u.exact {
		used = u.GivenBytes()
	}
	u.gauge.peak.Raise(u.gauge.live.Add(used - u.publishedBytes))
	u.publishedBytes = used
}

// lower takes freed blocks out of the gauge. It raises nothing: blocks of a batch that are not booked as parts yet are not given.
func (u *usage) lower() {
	if used := u.GivenBytes(); u.gauge != nil && used < u.publishedBytes {
		u.gauge.live.Add(used - u.publishedBytes)
		u.publishedBytes = used
	}
}

// Wait adds the units of a request to those that requests wait for, or subtracts them if bytes is negative. A
// request of no bytes does not count: it has no sign.
func (u *usage) Wait(bytes int64) {
	switch {
	case bytes < 0:
		u.waitingUnits -= sizeclass.Units(-bytes)
	case bytes > 0:
		u.waitingUnits += sizeclass.Units(bytes)
	}
}

// Parts returns the parts of the batches that the stream's callers have requested.
func (u *usage) Parts() *Parts { return u.parts }

// LiveBytes returns the memory that the stream needs at present: all that is not free in the heap,
// including cached slots, and the waiting requests.
func (u *usage) LiveBytes() int64 {
	return int64(u.ranges.usedUnits()+u.waitingUnits) << sizeclass.UnitShift
}

// OpenBytes returns the part of LiveBytes that no caller has: requests that wait for the pool, and parts.
func (u *usage) OpenBytes() int64 {
	return int64(u.waitingUnits+u.parts.Units()) << sizeclass.UnitShift
}

// GivenBytes returns the part of UsedBytes that callers have or magazines cache.
func (u *usage) GivenBytes() int64 { return int64(u.givenUnits()) << sizeclass.UnitShift }

func (u *usage) givenUnits() uint64 { return u.ranges.usedUnits() - u.parts.Units() - u.inFlight.units }
