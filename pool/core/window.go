package core

import (
	"slices"

	"github.com/go-vram/vram/internal/heap"
)

// window is a run of idle pages that can be made free by mapping the missing ones.
type window struct {
	run     Run
	missing uint32 // pages
	gap     uint32 // length of the idle region that it lies in
	apart   bool   // begins with missing pages beside another client's
}

// window finds the run of n idle pages with the fewest missing ones among those that start where a
// free run starts or end where one ends; of equals one beside the client's own memory, then the one in the smallest region. Pages tagged by
// another client are not idle to this one. The untouched end of the arena is one region.
func (c *Core) window(id Client, n uint32) (best window, ok bool) {
	top := c.pages.top()
	for at := c.pages.idle.next(0, top, true); ; {
		end := c.pages.idle.next(at, top, false)
		if end == top {
			end = c.maxPages
		}
		c.regions(id, Run{at, end - at}, func(r Run) {
			c.windowIn(id, r, n, &best, &ok)
		})
		if end == c.maxPages {
			return best, ok
		}
		at = c.pages.idle.next(end, top, true)
	}
}

// regions cuts an idle region at the runs that others have tagged.
func (c *Core) regions(id Client, r Run, visit func(Run)) {
	at, end := r.First, r.First+r.Pages
	c.eachRun(r, func(f Run) {
		if t := c.pages.table[f.First].client; t != 0 && t != id && (id != everybody || c.isExcluded(t)) {
			if f.First > at {
				visit(Run{at, f.First - at})
			}
			at = f.First + f.Pages
		}
	})
	if end > at {
		visit(Run{at, end - at})
	}
}

// eachRun visits the free runs of an idle region from its start, in order of address.
func (c *Core) eachRun(r Run, visit func(Run)) {
	end := min(r.First+r.Pages, c.pages.top())
	for at := c.pages.mapped.next(r.First, end, true); at < end; {
		n := c.pages.table[at].run
		visit(Run{at, n})
		at = c.pages.mapped.next(at+n, end, true)
	}
}

func (c *Core) windowIn(id Client, region Run, n uint32, best *window, ok *bool) {
	if region.Pages < n {
		return
	}
	last := region.First + region.Pages - n
	try := func(first uint32) {
		w := window{Run{first, n}, n - c.pages.mapped.count(Run{first, n}), region.Pages, false}
		w.apart = w.missing == n && first == region.First && !c.beside(id, first)
		if !*ok || w.missing < best.missing || w.missing == best.missing && (best.apart && !w.apart || w.apart == best.apart && w.gap < best.gap) {
			*best, *ok = w, true
		}
	}
	try(region.First)
	if end := region.First + region.Pages; end == c.maxPages && last-region.First >= c.zonePages() {
		try(region.First + c.zonePages())
	}
	c.eachRun(region, func(f Run) {
		try(min(f.First, last))
		if end := f.First + f.Pages; end >= region.First+n {
			try(min(end-n, last))
		}
	})
}

// zoneShare is the part of the arena that lies between the memory of clients, as far as there is room: address space costs
// nothing, and what is left of a client's last page joins what it is mapped next only if that lies beside it.
const zoneShare = 1024

// zonePages is zero in arenas that are not long enough.
func (c *Core) zonePages() uint32 { return c.maxPages / zoneShare }

// beside reports whether what a client gets at a page would lie beside its own memory, or there is no room to be apart from others.
func (c *Core) beside(id Client, first uint32) bool {
	if first == 0 || c.zonePages() == 0 || id == 0 || id == everybody {
		return true
	}
	t := &c.pages.table[min(first, c.pages.top())-1]
	return t.state == hole || t.state == lent && t.client == id
}

// victims are whole handles in clean runs outside the window, the longest first, since each costs the same whatever its
// length, and of equals those of the shortest runs. The result is valid until the next call.
func (c *Core) victims(keep Run) []int32 {
	found := c.found[:0]
	c.pages.clean.bins.Each(c.pages.links, 1, func(i int32) bool {
		first := uint32(i)
		run := Run{first, c.pages.table[first].run}
		for at := run.First; at < run.First+run.Pages; {
			h := c.pages.table[at].handle
			r := c.pages.handles[h].run
			if r.First >= run.First && r.First+r.Pages <= run.First+run.Pages && !overlap(r, keep) {
				found = append(found, victim{h, r.Pages, run.Pages, r.First})
			}
			at = r.First + r.Pages
		}
		return true
	})
	slices.SortFunc(found, func(a, b victim) int {
		if a.pages != b.pages {
			return int(b.pages) - int(a.pages)
		}
		if a.runPages != b.runPages {
			return int(a.runPages) - int(b.runPages)
		}
		return int(a.first) - int(b.first)
	})
	c.found = found
	ids := c.victimIDs[:0]
	for _, v := range found {
		ids = append(ids, v.handle)
	}
	c.victimIDs = ids
	return ids
}

type victim struct {
	handle   int32
	pages    uint32
	runPages uint32
	first    uint32
}

func overlap(a, b Run) bool {
	return a.First < b.First+b.Pages && b.First < a.First+a.Pages
}

// missingRuns are the holes of a window. The result is valid until the next call.
func (c *Core) missingRuns(w Run) []Run {
	runs := c.missing[:0]
	end := w.First + w.Pages
	for at := w.First; at < end; {
		if at < c.pages.top() && c.pages.table[at].handle != heap.None {
			at++
			continue
		}
		first := at
		for at < end && (at >= c.pages.top() || c.pages.table[at].handle == heap.None) {
			at++
		}
		runs = append(runs, Run{first, at - first})
	}
	c.missing = runs
	return runs
}
