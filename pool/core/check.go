package core

import (
	"fmt"

	"github.com/go-vram/vram/internal/heap"
)

// Check holds the books against the invariants of the package comment. It visits every page.
func (c *Core) Check() error {
	var counts [4]uint64
	held := map[Client]uint64{}
	for i := range c.pages.table {
		t := &c.pages.table[i]
		counts[t.state]++
		mapped := t.handle != heap.None
		switch t.state {
		case hole:
			if mapped {
				return fmt.Errorf("pool: page %d is a hole with handle %d", i, t.handle)
			}
		case free, lent:
			if !mapped {
				return fmt.Errorf("pool: page %d is in use without a handle", i)
			}
			if t.state == lent {
				held[t.client]++
			}
		case busy:
			if c.job == nil && (!mapped || !c.pages.handles[t.handle].lost) {
				return fmt.Errorf("pool: page %d is busy without a job", i)
			}
		}
		p := uint32(i)
		if c.pages.idle.next(p, p+1, true) == p != (t.state == hole || t.state == free) ||
			c.pages.mapped.next(p, p+1, true) == p != (t.state == free) {
			return fmt.Errorf("pool: page %d of state %d has wrong bits", i, t.state)
		}
	}
	if counts != c.pages.counts {
		return fmt.Errorf("pool: counted pages %v, the books say %v", counts, c.pages.counts)
	}
	for id, cl := range c.clients {
		if held[id] != cl.heldPages {
			return fmt.Errorf("pool: client %d holds %d pages, the books say %d", id, held[id], cl.heldPages)
		}
	}
	if err := c.waiters.check(); err != nil {
		return err
	}
	if err := c.checkHandles(); err != nil {
		return err
	}
	return c.checkRuns(counts[free])
}

// check holds what is kept of the waiters against them.
func (w *waiters) check() error {
	var bytes int64
	for _, r := range w.parked {
		bytes += r.bytes
		if w.named[ticket{r.client, r.token}] != r {
			return fmt.Errorf("pool: the request %d of client %d waits under another name", r.token, r.client)
		}
	}
	if bytes != w.demandBytes || len(w.named) != len(w.parked) {
		return fmt.Errorf("pool: %d requests wait for %d bytes, the books say %d for %d", len(w.parked), bytes, len(w.named), w.demandBytes)
	}
	return nil
}

func (c *Core) checkHandles() error {
	var reserved, lost int64
	for id := range c.pages.handles {
		h := &c.pages.handles[id]
		if !h.live {
			continue
		}
		reserved += c.bytes(h.run.Pages)
		if h.lost {
			lost += c.bytes(h.run.Pages)
		}
		for at := h.run.First; h.mapd && at < h.run.First+h.run.Pages; at++ {
			if c.pages.table[at].handle != int32(id) {
				return fmt.Errorf("pool: handle %d is mapped at page %d, the page says %d", id, at, c.pages.table[at].handle)
			}
		}
	}
	if reserved != c.reservedBytes || lost != c.lostBytes {
		return fmt.Errorf("pool: handles of %d bytes exist, %d of them lost, the books say %d and %d",
			reserved, lost, c.reservedBytes, c.lostBytes)
	}
	if c.reservedBytes > c.settings.LimitBytes && c.settings.LimitBytes > 0 && c.reservedBytes > c.grandfatherBytes {
		return fmt.Errorf("pool: %d bytes reserved over the limit of %d", c.reservedBytes, c.settings.LimitBytes)
	}
	return nil
}

func (c *Core) checkRuns(freePages uint64) error {
	var inRuns uint64
	runs := 0
	top := c.pages.top()
	for at := c.pages.mapped.next(0, top, true); at < top; at = c.pages.mapped.next(at, top, true) {
		t := c.pages.table[at]
		if t.run == 0 || at+t.run > top || c.pages.table[at+t.run-1].run != t.run {
			return fmt.Errorf("pool: the free run at page %d has length %d at its start", at, t.run)
		}
		if next := at + t.run; next < top && c.pages.table[next].state == free && c.pages.table[next].client == t.client {
			return fmt.Errorf("pool: free runs at pages %d and %d are not merged", at, next)
		}
		inRuns += uint64(t.run)
		runs++
		at += t.run
	}
	binned := c.pages.clean.bins.Count()
	for _, d := range c.pages.tagged {
		binned += d.bins.Count()
	}
	if inRuns != freePages || runs != binned {
		return fmt.Errorf("pool: %d free pages in %d runs, the books say %d in %d", inRuns, runs, freePages, binned)
	}
	return nil
}
