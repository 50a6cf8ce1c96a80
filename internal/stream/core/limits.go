package core

import (
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/sizeclass"
)

// Budget bounds the cache of a stream. Zero means no bound of its own: the pool reclaims cached pages
// when another request needs it. Only whole pages can be released; smaller free pieces stay.
type Budget struct {
	CacheBytes  int64 // in free ranges, and at most half of it in magazines of large blocks
	CacheRanges int   // free ranges that hold a whole page
}

// under returns the budget at a level of pressure: a bound remains a bound.
func (b Budget) under(s squeeze) Budget {
	if b.CacheBytes > 0 {
		b.CacheBytes = max(1, b.CacheBytes>>s.budgetShift)
	}
	if b.CacheRanges > 0 {
		b.CacheRanges = max(1, b.CacheRanges>>s.budgetShift)
	}
	return b
}

// squeeze is the effect of a level of pressure on the settings.
type squeeze struct {
	keptShift   uint // right shift of the magazines' part
	budgetShift uint // right shift of the budget
	eager       bool // blocks wait for a shared fence only up to the minimum
	idleTicks   int
	decayTicks  int
}

// squeezeAt is the table of the package comment. Not more at High: an active stream uses its cache. Not
// less at Critical: a stream that is idle for one tick has been idle for longer than most requests can wait.
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
	// idleTicks is how many consecutive ticks without an event make a stream idle. Not fewer: a program that
	// inspects results, loads data or waits for a request pauses for much of a second and then continues, and
	// each released range costs a request to the pool. Not more: until then the pool cannot return the
	// cached pages to the driver, and others get it only on request.
	idleTicks = 10
	// decayTicks is for how many ticks an idle stream releases half of the rest before it releases all.
	// Not fewer: a stream that resumes soon finds a part. Not more: by then a hundredth is left.
	decayTicks = 6
)

// limits bounds the stream's cache: the configured budget, reduced by the level of pressure.
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

// SetPressure sets the level. At the next tick, magazines of large blocks return their excess to the
// heap.
func (l *limits) SetPressure(level pressure.Level) {
	if level != l.level {
		l.level = level
		l.apply()
	}
}

func (l *limits) apply() {
	l.squeezed = squeezeAt(l.level)
	l.budget = l.set.under(l.squeezed)
	l.bounded = l.budget != (Budget{})
	l.retention.bound(l.budget.CacheBytes, l.squeezed.keptShift)
}

// exceeded reports whether the stream keeps more than its budget.
func (l *limits) exceeded() bool { return l.overBytes() > 0 || l.overRanges(1) > 0 }

// overBytes returns the cached bytes beyond the budget. The blocks of magazines count whether
// free or in use, since frees update no counter.
func (l *limits) overBytes() int64 {
	if l.budget.CacheBytes <= 0 {
		return 0
	}
	return max(0, l.keptBytes()-l.budget.CacheBytes)
}

// overPages returns overBytes in pages.
func (l *limits) overPages() uint32 {
	pageBytes := l.ranges.pageBytes()
	return uint32((l.overBytes() + pageBytes - 1) / pageBytes) //nolint:gosec // of one arena
}

func (l *limits) keptBytes() int64 {
	return int64(l.ranges.heap.FreeUnits()+l.retention.units) << sizeclass.UnitShift //nolint:gosec // of one arena
}

// overRanges returns the number of free ranges beyond the budget's, counted no further than limit. Usually
// there are fewer ranges than the budget, and none is visited.
func (l *limits) overRanges(limit int) int {
	most := l.budget.CacheRanges
	if free := l.ranges.heap.FreeRanges(); most <= 0 || free <= most {
		return 0
	}
	return max(0, l.ranges.heap.PageRanges(most+limit)-most)
}

// MostPages returns how many pages the stream can take for a request of some without exceeding its budget of
// bytes; 0: any number.
func (l *limits) MostPages(pages uint32) uint32 {
	if l.budget.CacheBytes <= 0 {
		return 0
	}
	pageBytes := l.ranges.pageBytes()
	spare := max(pageBytes, l.budget.CacheBytes-l.keptBytes())/pageBytes - 1 // the last page may be almost unused
	return uint32(min(int64(pages)+spare, 1<<32-1))                          //nolint:gosec // bounded here
}
