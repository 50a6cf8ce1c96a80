package core

import "github.com/go-vram/vram/internal/heap"

// room is the window that a request of n pages gets, and what is missing in it: with virtual memory the idle
// pages with the fewest holes; with plain segments free pages side by side, else the place of a new segment.
func (c *Core) room(id Client, n uint32) (window, bool) {
	if !c.plain {
		return c.window(id, n)
	}
	if w, ok := c.joined(id, n); ok {
		return w, true
	}
	return c.place(n)
}

// joined is a window of free pages that the client may use, though no single run is long enough: runs with
// different tags that lie side by side in one segment.
func (c *Core) joined(id Client, n uint32) (best window, ok bool) {
	top := c.pages.top()
	for at := c.pages.mapped.next(0, top, true); at < top; {
		end := c.pages.mapped.next(at, top, false)
		c.regions(id, Run{at, end - at}, func(r Run) { c.windowIn(id, r, n, &best, &ok) })
		at = c.pages.mapped.next(end, top, true)
	}
	return best, ok
}

// place finds page numbers for a new segment of n pages, with a hole on either side: segments never touch, so
// that no run reaches over two of them, wherever the driver puts them.
func (c *Core) place(n uint32) (window, bool) {
	if n > c.maxPages {
		return window{}, false
	}
	run, ok := c.holes(n + 2)
	return window{run: Run{run.First + 1, n}, missing: n}, ok
}

// startSegment builds the job that makes a segment, after whole segments were freed for it. Where the window is part of
// one that is there already, the job only awaits the fences of its pages.
func (c *Core) startSegment(r *request, w Run, victims []int32) {
	j := &Job{purpose: forWindow, request: r, window: w}
	missing := c.missingRuns(w)
	c.takeWindow(j, w)
	c.awaitOps(j)
	c.freeOps(j, victims)
	if len(missing) > 0 {
		j.Ops = append(j.Ops, Op{Verb: Alloc, Index: c.newHandle(w.Pages), Run: w})
	}
	c.start(j)
}

// freeOps frees segments that are free as a whole, and makes their pages busy.
func (c *Core) freeOps(j *Job, ids []int32) {
	for _, id := range ids {
		h := c.pages.handles[id]
		c.takePart(j, h.run.First, h.run.First+h.run.Pages)
		j.Ops = append(j.Ops, Op{Verb: Free, Index: id, Run: h.run, Address: h.at})
	}
}

// bookAlloc enters a segment that was made.
func (c *Core) bookAlloc(op Op) {
	h := &c.pages.handles[op.Index]
	*h = handle{at: op.Address, run: op.Run, live: true, mapd: true}
	for at := op.Run.First; at < op.Run.First+op.Run.Pages; at++ {
		c.pages.table[at].handle = op.Index
	}
	c.reserve(op.Run.Pages)
}

// bookFree enters that a segment is no more.
func (c *Core) bookFree(op Op) {
	c.unreserve(op.Index)
	for at := op.Run.First; at < op.Run.First+op.Run.Pages; at++ {
		c.pages.table[at].handle = heap.None
	}
	c.pages.setState(op.Run, hole, 0)
	c.dropHandle(op.Index)
}
