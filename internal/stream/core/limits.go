package core

import (
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/sizeclass"
)

// Budget bounds what a stream keeps. Zero means no bound of its own: the pool reclaims what is kept when
// another request needs it. Only whole pages can be released: what is free in smaller pieces stays.
type Budget struct {
	CacheBytes  int64 // in free ranges, and at most half of it in magazines of large blocks
	CacheRanges int   // free ranges that hold a whole page
}

// under is the budget at the level of pressure: a bound stays one.
func (b Budget) under(s squeeze) Budget {
	if b.CacheBytes > 0 {
		b.CacheBytes = max(1, b.CacheBytes>>s.budgetShift)
	}
	if b.CacheRanges > 0 {
		b.CacheRanges = max(1, b.CacheRanges>>s.budgetShift)
	}
	return b
}

// squeeze is what a level of pressure makes of the settings.
type squeeze struct {
	keptShift   uint // the part of magazines of large blocks is shifted down by it
	budgetShift uint // likewise what the budget allows
	eager       bool // blocks that wait to share a fence wait no longer than the minimum
	idleTicks   int
	decayTicks  int
}

// squeezeAt is the table of the package comment. Not more at High: what a stream at work keeps it uses. Not
// less at Critical: a stream that does nothing for a tick has been idle for longer than most requests can
// wait.
func squeezeAt(level pressure.Level) squeeze {
	switch level {
	case pressure.Normal:
		return squeeze{0, 0, false, idleTicks, decayTicks}
	case pressure.High:
		return squeeze{2, 1, true, 3, 2}
	case pressure.Critical:
		return squeeze{4, 2, true, 1, 0}
	}
	return squeeze{}
}

const (
	// idleTicks is how many ticks in a row nothing may have happened before a stream counts as idle. Not
	// fewer: a program that looks at its results, loads data or waits for a request pauses for a good part
	// of a second and goes on as before, and what was released costs a request to the pool each. Not more:
	// until then what the stream keeps serves others only if they ask, and is not returned to the driver.
	idleTicks = 10
	// decayTicks is for how many ticks an idle stream releases half of what is left before it releases
	// all. Not fewer: a stream that comes back after a little longer finds a part. Not more: by then a
	// hundredth is left.
	decayTicks = 6
)

// limits are what the stream may keep: the budget as it was set, and what the level of pressure leaves of it.
type limits struct {
	ranges    *ranges
	retention *retention
	set       Budget
	budget    Budget
	level     pressure.Level
	squeezed  squeeze
	bounded   bool // by a budget
}

// SetBudget replaces the budget from the next turn on.
func (l *limits) SetBudget(b Budget) {
	l.set = b
	l.apply()
}

// press sets the level of pressure.
func (l *limits) press(level pressure.Level) {
	l.level = level
	l.apply()
}

func (l *limits) apply() {
	l.squeezed = squeezeAt(l.level)
	l.budget = l.set.under(l.squeezed)
	l.bounded = l.budget != (Budget{})
	l.retention.bound(l.budget.CacheBytes, l.squeezed.keptShift)
}

// exceeded reports whether the stream keeps more than its budget.
func (l *limits) exceeded() bool { return l.overBytes() > 0 || l.overRanges(1) > 0 }

// overBytes is what the stream keeps beyond the budget's bytes. What magazines hold counts whether it is
// free or in use, since frees do not count.
func (l *limits) overBytes() int64 {
	if l.budget.CacheBytes <= 0 {
		return 0
	}
	return max(0, l.keptBytes()-l.budget.CacheBytes)
}

// overPages is how many pages that is.
func (l *limits) overPages() uint32 {
	pageBytes := l.ranges.pageBytes()
	return uint32((l.overBytes() + pageBytes - 1) / pageBytes) //nolint:gosec // of one arena
}

func (l *limits) keptBytes() int64 {
	return int64(l.ranges.heap.FreeUnits()+l.retention.units) << sizeclass.UnitShift //nolint:gosec // of one arena
}

// overRanges is the number of free ranges beyond the budget's, counted no further than limit. Most often
// there are not so many ranges at all, and none is looked at.
func (l *limits) overRanges(limit int) int {
	most := l.budget.CacheRanges
	free := l.ranges.heap.FreeRanges()
	if most <= 0 || free <= most {
		return 0
	}
	limit = min(limit, free-most)
	return max(0, l.ranges.heap.PageRanges(most+limit)-most)
}

// MostPages is how many pages the stream can take for a request of some without being over its budget of
// bytes; 0: as many as there are.
func (l *limits) MostPages(pages uint32) uint32 {
	if l.budget.CacheBytes <= 0 {
		return 0
	}
	pageBytes := l.ranges.pageBytes()
	spare := max(pageBytes, l.budget.CacheBytes-l.keptBytes())/pageBytes - 1 // the last of the pages may hardly be used
	return uint32(min(int64(pages)+spare, 1<<32-1))                          //nolint:gosec // bounded here
}
