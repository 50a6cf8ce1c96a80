package core

import (
	"fmt"

	"github.com/go-vram/vram/internal/pool/memory"
)

// Tests read these figures of a core.

func (c *Core) peakReservedBytes() int64 { return c.memory.Peaks().ReservedBytes }
func (c *Core) lostBytes() int64         { return c.memory.LostBytes() }
func (c *Core) freeBytes() int64         { return c.memory.FreeBytes() }
func (c *Core) pendingBytes() int64      { return c.memory.PendingBytes() }
func (c *Core) lentBytes() int64         { return c.memory.LentBytes() }
func (c *Core) busyBytes() int64         { return c.memory.BusyBytes() }
func (c *Core) freeRuns() int            { return c.memory.FreeRuns() }

// eachFree visits the free runs, in order of address.
func (c *Core) eachFree(visit func(run Run, tag memory.Tag)) {
	for at := uint32(0); at < c.memory.Top(); {
		p := c.memory.Page(at)
		if p.State != memory.Free {
			at++
			continue
		}
		visit(Run{First: at, Pages: p.RunPages}, p.Tag)
		at += p.RunPages
	}
}

// Settings returns the current settings.
func (c *Core) Settings() Settings { return c.settings }

// String returns a line for transcripts.
func (c *Core) String() string {
	m := c.memory
	return fmt.Sprintf("reserved %d free %d lent %d busy %d waiting %d",
		m.ReservedBytes(), m.FreeBytes(), m.LentBytes(), m.BusyBytes(), len(c.queue.refills)+len(c.queue.others))
}
