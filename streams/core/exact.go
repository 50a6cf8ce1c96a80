package core

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// Gauge sums what lives over the streams of a device that count exactly. The zero value is ready. Any number of
// goroutines may use it.
type Gauge struct{ live, peak atomic.Int64 }

// PeakBytes is the most that was live at once since ResetPeak, as the streams published it at their turns: what
// callers have freed since their stream's last turn still counts.
func (g *Gauge) PeakBytes() int64 { return g.peak.Load() }

// ResetPeak restarts the peak at the present value.
func (g *Gauge) ResetPeak() { g.peak.Store(g.live.Load()) }

func (g *Gauge) add(bytes int64) {
	live := g.live.Add(bytes)
	for peak := g.peak.Load(); live > peak && !g.peak.CompareAndSwap(peak, live); peak = g.peak.Load() {
	}
}

// exact is the state of a core that counts exactly. Magazines of classes that serve when it begins are shelved: no
// allocation finds them, buffers out of them come home as ever, and their span counts as live until all have.
type exact struct {
	live      *Gauge
	published int64
	shelved   []*magazine.Span
}

// setExact begins or ends to count exactly.
func (c *Core) setExact(on bool) {
	if c.counting == on {
		return
	}
	c.counting = on
	if on {
		c.shelve()
	} else {
		c.unshelve()
	}
	c.publish()
}

func (c *Core) shelve() {
	c.AskLanes() // they lease nothing any more
	c.evictAll()
	c.owner.Spans.Each(func(m *magazine.Span) {
		if m.Open && m.IsInstalled() {
			c.shelved = append(c.shelved, m)
			c.owner.Spans.Uninstall(m)
		}
	})
	c.closeShelved()
}

// unshelve lets those that still have their span serve again. Nothing was installed meanwhile.
func (c *Core) unshelve() {
	for _, m := range c.shelved {
		if m.Open && !m.IsInstalled() {
			c.owner.Spans.Reinstall(m)
		}
	}
	c.shelved = nil
	if c.wanted.on {
		c.owner.Spans.ShelveAll()
	}
}

// closeShelved retires spans of which no buffer lives any more.
func (c *Core) closeShelved() { c.retireIdle() }

// publish tells the gauge how many bytes live.
func (c *Core) publish() {
	if c.live == nil {
		return
	}
	var used int64
	if c.counting {
		used = c.GivenBytes()
	}
	c.live.add(used - c.published)
	c.published = used
}

// UsedBytes are those of the stream's pages that are in no free range: in buffers, and what magazines cache.
func (c *Core) UsedBytes() int64 {
	return int64(c.usedUnits()) << sizeclass.UnitShift
}

// allocExact is Alloc with a block of the request's own, whatever its length.
func (c *Core) allocExact(units uint32) (*magazine.Slot, uint32) {
	c.Drain()
	block, need := c.takeBlock(units)
	if block == heap.None {
		return nil, need
	}
	s := c.owner.Loose.Take()
	c.settleIn(s, block, units)
	c.notePeak()
	return s, 0
}
