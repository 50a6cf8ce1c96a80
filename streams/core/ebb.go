package core

const (
	// ebbShare is the part of the live peak below which almost nothing lives: an eighth. Not larger: a loop whose phases
	// use more would close what it needs at once again. Not smaller: weights that stay may be as much.
	ebbShare = 8
	// ebbTurns is how many requests must have taken a turn since the last sweep: it looks at every magazine. Not fewer: a
	// program with one buffer at a time is at its ebb after each. Not more: short rounds would miss theirs.
	ebbTurns = 128
)

// ebb notices that almost all buffers are gone: a step has ended, and what the next one allocates first should find long
// ranges. A slot that nobody uses in the middle of a range cuts it in two for as long as what lies beside it lives.
type ebb struct {
	belowUnits uint64 // 0: not since the last sweep
	turns      uint64 // when it was swept last
}

// note arms the sweep where more lives than an ebb and a rise behind it.
func (e *ebb) note(usedUnits, peakUnits uint64) {
	if e.belowUnits == 0 && usedUnits > peakUnits/ebbShare*2 {
		e.belowUnits = peakUnits / ebbShare
	}
}

// due reports whether it is time to sweep.
func (e *ebb) due(usedUnits, turns uint64) bool {
	if usedUnits >= e.belowUnits || turns-e.turns < ebbTurns {
		return false
	}
	e.belowUnits, e.turns = 0, turns
	return true
}

// sweep takes home what lies in magazines and spans of which no buffer lives.
func (c *Core) sweep() {
	c.Drain()
	c.closeIdle()
}

// closeIdle closes magazines of large blocks with a free slot, and spans that nobody uses.
func (c *Core) closeIdle() {
	for c.evictOldest() {
	}
	c.retireIdle()
}
