package core

import "math"

const (
	// calmLeast is how many requests must have taken a turn since the pool was needed last: or as many as until then. Not
	// fewer: the first pass of a loop still decides how much memory is held, and a block that is taken back before it was
	// merged cuts the range around it. Not more: short programs would never come to it.
	calmLeast = 256
	// calmPatience is after how many times as many it begins without an ebb. Not fewer: a step that begins with other places than
	// it goes on with needs more than either; traces grew by up to two percent in their third round.
	calmPatience = 4
)

// calm is when callers may take blocks back that were freed, before those come home (magazine.Cache.TakeBack): once the
// stream's own memory has sufficed for a step, so that what lies where matters less than what it costs; and of what
// length, which is what magazines may hold, for the same reason.
type calm struct {
	calmAt uint64 // turns; the last number there is once they may
}

// upset has what is freed come home first: the pool was needed.
func (c *Core) upset() {
	c.calmAt = c.misses.Turns + max(c.misses.Turns, calmLeast)
	c.owner.LetTakeBack(0)
}

// settleDown lets callers take blocks back, at an ebb, unless somebody must see each of them.
func (c *Core) settleDown() {
	if c.usedUnits() >= c.livePeak/ebbShare && c.misses.Turns/calmPatience < c.calmAt {
		return
	}
	c.calmAt = math.MaxUint64
	if !c.counting && !c.wanted.on {
		c.owner.LetTakeBack(uint32(min(c.keptLimit(), math.MaxUint32))) //nolint:gosec // bounded
	}
}
