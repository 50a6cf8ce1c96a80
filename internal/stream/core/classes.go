package core

import (
	"math/bits"

	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// classes serves requests of up to 64 KiB from magazines over spans.
type classes struct {
	magazines *magazine.Spans
	spans     *spans
	room      *room
	wanted    *wanted
}

// alloc serves a class from its magazines or a new span; nil if the heap has no span for it.
func (c *classes) alloc(class, hint int) *magazine.Slot {
	if c.wanted.on {
		return c.allocUnseen(class)
	}
	for {
		m := c.magazines.At(class, hint)
		if m == nil {
			if m = c.supply(class); m == nil {
				return nil
			}
			c.magazines.Install(m, hint)
		}
		if s := m.Take(); s != nil {
			c.magazines.Shard(m, hint)
			return s
		}
		// Exhausted, possibly by callers that looked up a new magazine when it was installed before.
		c.magazines.Park(m) // fails after a concurrent free: then the next Take succeeds
	}
}

// allocUnseen is alloc while requests wait for memory: it hides the magazine from callers.
func (c *classes) allocUnseen(class int) *magazine.Slot {
	for {
		if m, taken := c.magazines.TakeReady(class, 1); taken != 0 {
			return m.At(bits.TrailingZeros64(taken))
		}
		m := c.carve(class)
		if m == nil {
			return nil
		}
		c.magazines.Shelve(m)
	}
}

// supply returns a magazine of the class with free slots, not installed; nil if the heap has no span for it.
func (c *classes) supply(class int) *magazine.Span {
	if m := c.magazines.Ready(class); m != nil {
		return m
	}
	return c.carve(class)
}

// carve is supply with a new span.
func (c *classes) carve(class int) *magazine.Span {
	block := c.room.take(sizeclass.SpanUnits(class))
	if block == heap.None {
		return nil
	}
	return c.spans.carve(class, block)
}

// allocMany empties the installed magazine, then parked ones with free slots, which stay parked, and then
// carves spans. It installs the last if slots are left.
func (c *classes) allocMany(class, most, hint int, take func(*magazine.Slot)) int {
	got := 0
	if m := c.magazines.At(class, hint); m != nil {
		got = pass(&m.Magazine, m.TakeMany(most), take)
		c.magazines.Shard(m, hint)
	}
	for got < most {
		m, taken := c.magazines.TakeReady(class, most-got)
		if m == nil {
			break
		}
		got += pass(&m.Magazine, taken, take)
	}
	for got < most {
		m := c.supply(class)
		if m == nil {
			break
		}
		got += pass(&m.Magazine, m.TakeMany(most-got), take)
		if old := c.magazines.At(class, hint); c.wanted.on {
			c.magazines.Shelve(m)
		} else if old == nil || m.FreeSlots() > 0 && c.magazines.Park(old) {
			c.magazines.Install(m, hint)
		} else {
			c.magazines.Shelve(m)
		}
	}
	return got
}

// pass passes the taken slots of a magazine, given as bits.
func pass(m *magazine.Magazine, taken uint64, take func(*magazine.Slot)) int {
	for left := taken; left != 0; left &= left - 1 {
		take(m.At(bits.TrailingZeros64(left)))
	}
	return bits.OnesCount64(taken)
}
