package core

import "github.com/go-vram/vram/internal/sizeclass"

// What is in use is what callers were given, and what batches have got that wait for the rest: those may be refused, and then nobody
// had it. The statistics count what was given; what the stream keeps in magazines, and when it sweeps, goes by all that is in use.

// notePeak notes what an allocation gave a caller.
func (c *Core) notePeak() {
	c.noteUse()
	c.noteGiven()
}

// noteUse notes what is in use for those decisions that go by it, whether a caller has it or a batch that has not got all.
func (c *Core) noteUse() {
	used := c.usedUnits()
	c.livePeak = max(c.livePeak, used)
	c.ebb.note(used, c.livePeak)
}

// noteGiven notes what callers have, for the statistics.
func (c *Core) noteGiven() {
	c.peakUnits = max(c.peakUnits, c.givenUnits())
	if c.counting {
		c.publish()
	}
}

// HoldParts adds bytes of blocks to, or with a negative number takes them from, those that batches have got which wait for the rest.
func (c *Core) HoldParts(bytes int64) {
	if bytes < 0 {
		c.parts -= uint64(-bytes) >> sizeclass.UnitShift
	} else {
		c.parts += uint64(bytes) >> sizeclass.UnitShift
	}
}

// OpenBytes are those of LiveBytes that no caller has: requests that wait for the pool, and what batches among them have got.
func (c *Core) OpenBytes() int64 { return int64(c.waiting+c.parts) << sizeclass.UnitShift }

// GivenBytes are those of UsedBytes that callers have, or magazines cache.
func (c *Core) GivenBytes() int64 { return int64(c.givenUnits()) << sizeclass.UnitShift }

func (c *Core) givenUnits() uint64 { return c.usedUnits() - c.parts }
