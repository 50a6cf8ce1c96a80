package core

import (
	"math"

	"github.com/go-vram/vram/internal/heap"
)

const (
	// calmShare is how many times as many requests as there were until the pool was needed last must have taken a turn
	// since then. Not fewer: the first pass of a loop still decides how much memory is held, and a block that is
	// taken back before it was merged cuts the range around it: with half of it a trace held four percent more. Not more:
	// short programs would never come to it.
	calmShare = 2
	// calmLeast is how many they must be at least.
	calmLeast = 256
)

// calm is when callers may take blocks back that were freed, before those come home (magazine.Cache.TakeBack): once the
// stream's own memory has sufficed for a while, so that what lies where matters less than what it costs; and of what
// length, which is what magazines may hold, for the same reason.
type calm struct {
	calmAt uint64 // turns; the last number there is once they may
}

// upset has what is freed come home first: the pool was needed.
func (c *Core) upset() {
	c.calmAt = c.misses.Turns + max(c.misses.Turns*calmShare, calmLeast)
	c.owner.LetTakeBack(0)
}

// settleDown lets callers take blocks back, unless somebody must see each of them, or where the lowest range is wanted.
func (c *Core) settleDown() {
	c.calmAt = math.MaxUint64
	if !c.counting && c.tape == nil && !c.wanted.on && c.heap.Strategy() == heap.BestFit {
		c.owner.LetTakeBack(uint32(min(c.keptLimit(), math.MaxUint32))) //nolint:gosec // bounded
	}
}
