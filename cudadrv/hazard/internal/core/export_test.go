package core

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"
)

// CellCount is for tests.
func (c *Core) CellCount() int { return c.memory.cells.Len() }

// Entries counts what is kept of streams and events.
func (c *Core) Entries() int {
	return len(c.order.streams) + len(c.order.events) + len(c.order.places) + len(c.order.gone) + len(c.order.idle) +
		len(c.reports.numbers) + len(c.asleep) + len(c.holds) + len(c.live) + len(c.graphs.captured) + len(c.graphs.made) + len(c.graphs.execs)
}

// Check holds the cells against their invariant.
func (c *Core) Check() error {
	var reached cudadrv.Ptr
	var wrong error
	var last *cell
	c.memory.cells.Ascend(0, func(start cudadrv.Ptr, at *cell) bool {
		if start < reached || at.end <= start {
			wrong = fmt.Errorf("a cell of [%#x,%#x) after %#x", start, at.end, reached)
		}
		if last != nil && start == reached && last.alike(at) {
			wrong = fmt.Errorf("two cells that are alike meet at %#x", start)
		}
		reached, last = at.end, at
		return wrong == nil
	})
	return wrong
}
