package core

import (
	"github.com/go-vram/vram/internal/pool/memory"
)

// MappedRun is a run of pages that exist for the driver.
type MappedRun struct {
	memory.MappedRun
	SetAside bool // lent to a reservation
}

// Map lists the pages that have a handle, in order, as the last job that ended has left them. It visits every page.
func (c *Core) Map() (all []MappedRun) {
	c.memory.EachMapped(func(r memory.MappedRun) {
		cl := c.clients.all[r.Client]
		all = append(all, MappedRun{r, r.State == memory.Lent && cl != nil && cl.reserves})
	})
	return all
}
