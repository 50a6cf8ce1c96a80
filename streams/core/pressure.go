package core

import (
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/sizeclass"
)

// pressed is the level of pressure, and the settings whose meaning it changes as they were set.
type pressed struct {
	level         pressure.Level
	squeezed      squeeze // by the level: the miss path reads it
	asked         Budget
	strategy      heap.Strategy
	coalesceBytes int64
}

// squeeze is what a level makes of the settings.
type squeeze struct {
	keptShift   uint // the part of magazines of large blocks is shifted down by it
	budgetShift uint // likewise what the budget allows
	eager       bool // everything is merged as soon as it is free
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
	c.configure()
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

// configure tells the heap how to search and when to merge.
func (c *Core) configure() {
	apartUnits := min(uint64(max(c.coalesceBytes, 0))>>sizeclass.UnitShift, 1<<32-1)
	if c.squeezed.eager {
		apartUnits = 0
	}
	c.heap.Configure(c.strategy, uint32(apartUnits)) //nolint:gosec // bounded by the line above
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
