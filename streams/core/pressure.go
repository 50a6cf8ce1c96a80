package core

import "github.com/go-vram/vram/internal/pressure"

// pressed is the level of pressure, and the budget as it was set.
type pressed struct {
	level    pressure.Level
	squeezed squeeze // by the level: the miss path reads it
	asked    Budget
}

// squeeze is what a level makes of the settings.
type squeeze struct {
	keptShift   uint // the part of magazines of large blocks is shifted down by it
	budgetShift uint // likewise what the budget allows
	eager       bool // blocks that wait to share a fence wait no longer than the least
	idleTicks   int
	decayTicks  int
}

// squeezeAt is the table of the package comment. Not more at High: what a stream at work keeps it uses. Not less at
// Critical: a stream that does nothing for a tick has been idle for longer than most requests can wait.
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

// SetPressure sets the level. What magazines of large blocks hold beyond their part goes back to the heap at the next tick. Where the
// level rises to the last, lanes are told to give back what they do not use.
func (c *Core) SetPressure(level pressure.Level) {
	if level == c.level {
		return
	}
	rose := level > c.level
	c.level, c.squeezed = level, squeezeAt(level)
	c.SetBudget(c.asked)
	if rose && level == pressure.Critical {
		c.AskLanes()
	}
}

// shrink gives the heap what magazines of large blocks hold beyond their part. Only under pressure, and after it, is
// there any: otherwise their part does not shrink.
func (c *Core) shrink() {
	for c.keptUnits > c.keptLimit() && c.evictOldest() {
	}
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
