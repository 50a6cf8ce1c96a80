package core

import (
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/watermark"
)

// usage counts the memory in use. A block in use is one that a caller was given, or a part of a batch: see
// Parts. The statistics count what was given; decisions about magazines and sweeps go by all that is in use.
type usage struct {
	ranges       *ranges
	waitingUnits uint64 // of requests that wait for the pool
	parts        *Parts
	peakUnits    uint64 // in use at most, ever
	quiescence   quiescence

	exact          bool   // count exactly, and publish
	gauge          *Gauge // nil: there is no sum
	publishedBytes int64

	// Behind the fields of each miss.
	givenPeak watermark.Mark // units given at most
}

// notePeak notes an allocation that a caller was given.
func (u *usage) notePeak() {
	used := u.ranges.usedUnits()
	u.raise(used)
	u.raiseGiven(used - u.parts.Units())
}

// noteUse notes what is in use, by which decisions go.
func (u *usage) noteUse() { u.raise(u.ranges.usedUnits()) }

// noteGiven notes what callers have, for the statistics.
func (u *usage) noteGiven() { u.raiseGiven(u.givenUnits()) }

func (u *usage) raise(usedUnits uint64) {
	u.peakUnits = max(u.peakUnits, usedUnits)
	u.quiescence.arm(usedUnits, u.peakUnits)
}

func (u *usage) raiseGiven(givenUnits uint64) {
	u.givenPeak.Raise(int64(givenUnits)) //nolint:gosec // units of one arena
	if u.exact {
		u.publish()
	}
}

// resetPeak restarts the peak of the statistics at so many units that callers have.
func (u *usage) resetPeak(givenUnits uint64) {
	u.givenPeak.Reset(int64(givenUnits)) //nolint:gosec // units of one arena
	if u.exact {
		u.publish()
	}
}

// beginScope begins a scope of the peak, at so many units that callers have.
func (u *usage) beginScope(number, givenUnits uint64) {
	u.givenPeak.Begin(number, int64(givenUnits)) //nolint:gosec // units of one arena
	if u.exact {
		u.publish()
	}
}

// quiescent reports whether less is in use than an eighth of the peak.
func (u *usage) quiescent() bool { return u.ranges.usedUnits() < u.peakUnits/quiescentShare }

// publish tells the gauge how many bytes live.
func (u *usage) publish() {
	if u.gauge == nil {
		return
	}
	var used int64
	if u.exact {
		used = u.GivenBytes()
	}
	u.gauge.add(used - u.publishedBytes)
	u.publishedBytes = used
}

// Wait adds the units of a request to, or with a negative number takes them from, those that requests wait
// for. A request of no bytes does not count: it has no sign.
func (u *usage) Wait(bytes int64) {
	switch {
	case bytes < 0:
		u.waitingUnits -= sizeclass.Units(-bytes)
	case bytes > 0:
		u.waitingUnits += sizeclass.Units(bytes)
	}
}

// Parts are those of the batches that the stream's callers have asked for.
func (u *usage) Parts() *Parts { return u.parts }

// LiveBytes is what the stream cannot do without as things are: all that is not free in the heap, also what
// its magazines cache, and the requests that wait.
func (u *usage) LiveBytes() int64 {
	return int64(u.ranges.usedUnits()+u.waitingUnits) << sizeclass.UnitShift
}

// OpenBytes are those of LiveBytes that no caller has: requests that wait for the pool, and parts.
func (u *usage) OpenBytes() int64 {
	return int64(u.waitingUnits+u.parts.Units()) << sizeclass.UnitShift
}

// GivenBytes are those of UsedBytes that callers have, or magazines cache.
func (u *usage) GivenBytes() int64 { return int64(u.givenUnits()) << sizeclass.UnitShift }

func (u *usage) givenUnits() uint64 { return u.ranges.usedUnits() - u.parts.Units() }
