package core

import (
	"math/bits"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// AllocMany serves up to most requests for blocks of that many units, as a batch groups them, and passes the
// slots to take. It returns how many there were: fewer than most if the stream's memory holds no more. Blocks
// beyond the classes are carved side by side from the range that fits one best, as many as it holds, and
// return to the heap when freed. Drain comes before. Precondition: units and most are positive; units is the
// length of a class, or beyond them.
func (c *Core) AllocMany(units uint32, most, hint int, take func(*magazine.Slot)) int {
	var got int
	if units <= sizeclass.MaxUnits && !c.counting {
		got = c.manySmall(sizeclass.Of(uint64(units)), most, hint, take)
	} else {
		got = c.manyLarge(units, most, hint, take)
	}
	c.noteUse() // whether the batch is given, ServedMany says
	return got
}

// manySmall empties the magazine in use, then those that are parked and have free slots, which stay out of
// use, and then carves spans. What is left of the last comes into use.
func (c *Core) manySmall(class, most, hint int, take func(*magazine.Slot)) int {
	got := 0
	if m := c.owner.Spans.At(class, hint); m != nil {
		got = pass(&m.Magazine, m.TakeMany(most), take)
		c.owner.Spans.Shard(m, hint)
	}
	for got < most {
		m, taken := c.owner.Spans.TakeReady(class, most-got)
		if m == nil {
			break
		}
		got += pass(&m.Magazine, taken, take)
	}
	for got < most {
		m, _ := c.supply(class)
		if m == nil {
			break
		}
		got += pass(&m.Magazine, m.TakeMany(most-got), take)
		if old := c.owner.Spans.At(class, hint); c.wanted.on {
			c.owner.Spans.Shelve(m)
		} else if old == nil || m.FreeSlots() > 0 && c.owner.Spans.Park(old) {
			c.owner.Spans.Install(m, hint)
		} else {
			c.owner.Spans.Shelve(m)
		}
	}
	return got
}

func (c *Core) manyLarge(units uint32, most, hint int, take func(*magazine.Slot)) int {
	bucket := magazine.BucketOf(uint64(units))
	got := 0
	if m := c.owner.Exacts.At(bucket, hint); m != nil && m.Units() == units {
		if got = pass(&m.Magazine, m.TakeMany(most), take); got == most {
			c.owner.Exacts.Shard(m, hint)
			return got
		}
	}
	place := func(block int32) {
		s := c.owner.Loose.Take()
		c.settleIn(s, block, units)
		take(s)
	}
	for got < most {
		n := c.heap.Carve(units, most-got, place)
		got += n
		if n == 0 && !c.makeRoom(units) {
			break
		}
	}
	return got
}

// pass passes slots that were taken from a magazine on.
func pass(m *magazine.Magazine, taken uint64, take func(*magazine.Slot)) int {
	for left := taken; left != 0; left &= left - 1 {
		take(m.At(bits.TrailingZeros64(left)))
	}
	return bits.OnesCount64(taken)
}

// makeRoom takes home what lanes left behind, closes magazines of large blocks until a range of that
// many units is free, and then retires spans that nobody uses. It reports whether there is one.
func (c *Core) makeRoom(units uint32) bool {
	c.leases.Collect()
	if c.heap.LargestFits(units) {
		return true
	}
	for c.evictOldest() {
		if c.heap.LargestFits(units) {
			return true
		}
	}
	c.retireIdle() // else the pool is asked, asks for all that is free, and finds it
	return c.heap.LargestFits(units)
}

// UnservedMany takes back what ServedMany has counted of so many requests that the stream's ranges served: whoever goes on with
// the batch counts them, or puts their blocks back.
func (c *Core) UnservedMany(byRanges int) { c.misses.Turns -= uint64(byRanges) }

// ServedMany is Served for so many requests of a batch, which is given.
func (c *Core) ServedMany(byRanges, byPool int) {
	c.noteGiven()
	c.misses.Turns += uint64(byRanges + byPool)
	c.misses.Refill += uint64(byPool)
	switch {
	case byPool > 0:
		c.upset()
	case c.misses.Turns >= c.calmAt:
		c.settleDown()
	}
}
