package core

import (
	"slices"

	"github.com/go-vram/vram/internal/heap"
)

type purpose uint8

const (
	forQuery    purpose = iota // polls or waits for fences only
	forWindow                  // makes the window free for its request
	forRelease                 // gives handles back to the driver
	forRollback                // gives back what a failed job left
	forClose                   // gives everything back
)

// start puts a job in flight.
func (c *Core) start(j *Job) {
	j.startBytes = c.reservedBytes
	c.job = j
	c.fx.Job = j
}

// poll asks how far the fences of all tagged runs have passed. For a request that may have plain segments freed it also asks
// whether the device has work: freeing waits for all of it.
func (c *Core) poll(r *request) {
	idle := c.plain && r != nil && r.kind == refill
	if ids := c.taggedClients(); len(ids) > 0 || idle {
		c.start(&Job{Poll: ids, Idle: idle, purpose: forQuery, request: r})
	}
}

func (c *Core) taggedClients() []Client {
	var ids []Client
	for id, d := range c.pages.tagged {
		if d.bins.Count() > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// passed cleans the runs of a client up to a fence.
func (c *Core) passed(p Passed) {
	if cl := c.clients[p.Client]; cl != nil {
		cl.passed = max(cl.passed, p.Fence)
	}
	c.queue.cleanParts(p)
	d := c.pages.tagged[p.Client]
	if d == nil {
		return
	}
	firsts := c.scratch[:0]
	d.bins.Each(c.pages.links, 1, func(i int32) bool {
		if c.pages.table[i].fence <= p.Fence {
			firsts = append(firsts, uint32(i))
		}
		return true
	})
	c.scratch = firsts
	for _, first := range firsts {
		r := Run{first, c.pages.table[first].run}
		c.pages.removeRun(first)
		c.pages.addFree(r, 0, 0)
		c.progress++
	}
	c.dropDomain(p.Client)
}

// grow maps the missing pages of a window with new handles.
func (c *Core) grow(r *request, w window) {
	c.startWindow(r, w.run, nil)
}

// startWindow builds the job that fills a window from the victims, then from new handles.
func (c *Core) startWindow(r *request, w Run, victims []int32) {
	if r.kind == refill {
		c.forecast.grow(w.Pages)
	}
	if c.plain {
		c.startSegment(r, w, victims)
		return
	}
	j := &Job{purpose: forWindow, request: r, window: w}
	missing := c.missingRuns(w)
	c.takeWindow(j, w)
	c.awaitOps(j)
	c.unmapOps(j, victims)

	left := slices.Clone(victims) // those with no new place yet
	slices.SortStableFunc(left, func(a, b int32) int {
		return int(c.pages.handles[b].run.Pages) - int(c.pages.handles[a].run.Pages)
	})
	fill := make([]Op, 0, 4*len(missing)+len(victims))
	for _, m := range missing {
		at, n := m.First, m.Pages
		least := min(c.settings.Policy.MergePages, n)
		for i := 0; i < len(left); {
			if k := c.pages.handles[left[i]].run.Pages; k <= n && k >= least {
				fill = append(fill, Op{Verb: Map, Run: Run{at, k}, Index: left[i], Handle: c.pages.handles[left[i]].id})
				at, n = at+k, n-k
				left = slices.Delete(left, i, i+1)
			} else {
				i++
			}
		}
		fill = c.createOps(fill, Run{at, n})
		fill = append(fill, Op{Verb: Access, Run: m})
	}
	for _, id := range left {
		j.Ops = append(j.Ops, Op{Verb: Release, Index: id, Handle: c.pages.handles[id].id, Run: c.pages.handles[id].run})
	}
	j.Ops = append(j.Ops, fill...)
	c.start(j)
}

// createOps cuts a run into new handles as equal as possible.
func (c *Core) createOps(ops []Op, r Run) []Op {
	if r.Pages == 0 {
		return ops
	}
	most := c.handlePages()
	for n := (r.Pages + most - 1) / most; n > 0; n-- {
		k := (r.Pages + n - 1) / n
		id := c.newHandle(k)
		piece := Run{r.First, k}
		ops = append(ops, Op{Verb: Create, Index: id, Run: piece}, Op{Verb: Map, Index: id, Run: piece})
		r.First, r.Pages = r.First+k, r.Pages-k
	}
	return ops
}

func (c *Core) newHandle(pages uint32) int32 {
	h := handle{run: Run{0, pages}}
	if n := len(c.pages.spare); n > 0 {
		id := c.pages.spare[n-1]
		c.pages.spare = c.pages.spare[:n-1]
		c.pages.handles[id] = h
		return id
	}
	c.pages.handles = append(c.pages.handles, h)
	return int32(len(c.pages.handles) - 1)
}

func (c *Core) dropHandle(id int32) {
	c.pages.handles[id] = handle{}
	c.pages.spare = append(c.pages.spare, id)
}

// takeWindow makes the pages of a window busy and remembers the tags that its free pages had.
func (c *Core) takeWindow(j *Job, w Run) {
	end := w.First + w.Pages
	c.pages.extend(end)
	for at := w.First; at < end; {
		if c.pages.table[at].state == hole {
			stop := c.pages.mapped.next(at, end, true)
			c.pages.setState(Run{at, stop - at}, busy, 0)
			at = stop
			continue
		}
		at = c.takePart(j, at, end)
	}
}

// takePart makes the part below end of the free run at that page busy. A window never starts inside a
// run unless the run reaches beyond it to the left; then its first page is found by the run's end.
func (c *Core) takePart(j *Job, at, end uint32) uint32 {
	stop := c.pages.mapped.next(at, c.pages.top(), false)
	first := at
	for e := stop; e > at; { // runs side by side with different tags, from the right
		first = e - c.pages.table[e-1].run
		stop, e = e, first
	}
	t := c.pages.table[first]
	stop = min(stop, end)
	if t.client != 0 {
		j.parts = append(j.parts, part{Run{at, stop - at}, t.client, t.fence})
	}
	c.pages.takeFree(first, Run{at, stop - at}, busy, 0)
	return stop
}

// unmapOps unmaps handles, one call for those that lie side by side, and makes their pages busy.
func (c *Core) unmapOps(j *Job, ids []int32) {
	runs := make([]Run, len(ids))
	for i, id := range ids {
		runs[i] = c.pages.handles[id].run
		c.takePart(j, runs[i].First, runs[i].First+runs[i].Pages)
	}
	slices.SortFunc(runs, func(a, b Run) int { return int(a.First) - int(b.First) })
	for _, r := range runs {
		if n := len(j.Ops); n > 0 && j.Ops[n-1].Run.First+j.Ops[n-1].Run.Pages == r.First {
			j.Ops[n-1].Run.Pages += r.Pages
			continue
		}
		j.Ops = append(j.Ops, Op{Verb: Unmap, Run: r})
	}
}

// release starts a job that gives clean handles back until that many bytes are gone.
func (c *Core) release(r *request, bytes int64) bool {
	ids, _ := c.victimsOf(bytes, Run{})
	if len(ids) == 0 {
		return false
	}
	j := &Job{purpose: forRelease, request: r}
	if c.plain {
		c.freeOps(j, ids)
		c.start(j)
		return true
	}
	c.unmapOps(j, ids)
	for _, id := range ids {
		h := c.pages.handles[id]
		j.Ops = append(j.Ops, Op{Verb: Release, Index: id, Handle: h.id, Run: h.run})
	}
	c.start(j)
	return true
}

// jobDone books what a job did and goes on.
func (c *Core) jobDone(m JobDone) {
	j := m.Job
	if j == nil || j != c.job {
		return
	}
	c.job = nil
	for _, p := range m.Passed {
		c.passed(p)
		j.passed(p)
	}
	before := c.reservedBytes
	for _, op := range j.Ops[:m.Done] {
		c.book(op)
	}
	c.count(j, c.reservedBytes-before, m.Err)
	switch {
	case m.Err == nil:
		c.watchesBegun(m.Watched)
		if j.Idle {
			j.request.deviceIdle = m.Idle
		}
		c.succeeded(j)
	case j.purpose == forQuery: // nothing changed
		if r := j.request; r != nil {
			r.err, r.rung = m.Err, rungDeny
		}
	default:
		c.failed(j, m)
	}
	c.advance()
	c.finishClose()
}

// count adds what a job did to the reserved bytes to the report of its Warm or Trim.
func (c *Core) count(j *Job, grownBytes int64, err error) {
	switch r := j.request; {
	case r == nil:
	case r.kind == trim:
		r.freed -= grownBytes
	case r.kind == warm && err == nil:
		r.freed += grownBytes
	}
}

// book enters one driver call that succeeded.
func (c *Core) book(op Op) {
	switch op.Verb {
	case Unmap:
		for at := op.Run.First; at < op.Run.First+op.Run.Pages; {
			h := &c.pages.handles[c.pages.table[at].handle]
			h.mapd = false
			for end := at + h.run.Pages; at < end; at++ {
				c.pages.table[at].handle = heap.None
			}
		}
		c.pages.setState(op.Run, hole, 0)
	case Create:
		h := &c.pages.handles[op.Index]
		h.id, h.live, h.fresh = op.Handle, true, true
		c.reserve(op.Run.Pages)
	case Map:
		h := &c.pages.handles[op.Index]
		h.run.First, h.mapd, h.fresh = op.Run.First, true, true
		for at := op.Run.First; at < op.Run.First+op.Run.Pages; at++ {
			c.pages.table[at].handle = op.Index
		}
	case Access, Await:
	case Release:
		c.unreserve(op.Index)
		c.dropHandle(op.Index)
	case Alloc:
		c.bookAlloc(op)
	case Free:
		c.bookFree(op)
	}
}

func (c *Core) reserve(pages uint32) {
	c.reservedBytes += c.bytes(pages)
	c.peakReservedBytes = max(c.peakReservedBytes, c.reservedBytes)
}

func (c *Core) unreserve(id int32) {
	bytes := c.bytes(c.pages.handles[id].run.Pages)
	c.reservedBytes -= bytes
	if c.pages.handles[id].lost {
		c.lostBytes -= bytes
	}
}

// succeeded hands the result of a job on. A window whose request was served meanwhile, or was a
// warm-up's, is free for whoever needs it; the warm-up then finds it.
func (c *Core) succeeded(j *Job) {
	for _, op := range j.Ops {
		if op.Verb == Map {
			c.pages.handles[op.Index].fresh = false
		}
	}
	if j.purpose != forWindow {
		return
	}
	r := j.request
	if r.done || r.kind == warm || j.window.Pages < r.pages { // it may have got that run, and look for a longer one
		c.giveParts(j, j.window)
		return
	}
	c.driverGrants++
	if c.grantWindow(r, j, j.window) {
		c.queue.remove(r)
	}
}

// failed puts the books right after a job that stopped at operation m.Done: what was mapped before and
// still is becomes free again, what the job made or moved goes back to the driver.
func (c *Core) failed(j *Job, m JobDone) {
	var undo []Op
	for _, op := range j.Ops[m.Done:] {
		switch op.Verb {
		case Unmap, Free: // still there, untouched
			if j.purpose != forRollback && j.purpose != forClose {
				c.pages.addFree(op.Run, 0, 0)
			}
		case Create, Alloc: // never made
			c.dropHandle(op.Index)
		case Map, Access, Release, Await:
		}
	}
	switch j.purpose {
	case forRollback, forClose:
		undo = c.skipLost(j.Ops[m.Done:])
	case forQuery, forWindow, forRelease:
		undo = c.undoOps(j)
	}
	switch {
	case j.purpose == forWindow:
		c.freeWindow(j)
		at := Await // a job of no operations changes nothing either
		if m.Done < len(j.Ops) {
			at = j.Ops[m.Done].Verb
		}
		c.failRequest(j, at, m)
	case j.purpose == forRelease && j.request != nil:
		j.request.err = m.Err
	case j.purpose == forRelease:
		c.boundFailed = true
	}
	if len(undo) > 0 {
		next := &Job{purpose: forRollback, Ops: undo}
		switch {
		case j.purpose == forClose:
			next.purpose = forClose
		case j.request != nil && j.request.kind == trim: // what goes back is counted
			next.request = j.request
		}
		c.start(next)
	}
}

// undoOps unmaps and releases every handle that a failed job made, moved or took out. Nothing is left of a job on
// plain segments: it ends with the only one that it makes.
func (c *Core) undoOps(j *Job) []Op {
	var unmaps, releases []Op
	seen := map[int32]bool{}
	for _, op := range j.Ops {
		if op.Verb != Map && op.Verb != Create && op.Verb != Release || seen[op.Index] {
			continue
		}
		seen[op.Index] = true
		h := &c.pages.handles[op.Index]
		if !h.live || (h.mapd && !h.fresh) { // never made, given back already, or still where it was
			continue
		}
		if h.mapd {
			unmaps = append(unmaps, Op{Verb: Unmap, Run: h.run})
		}
		releases = append(releases, Op{Verb: Release, Index: op.Index, Handle: h.id, Run: h.run})
		h.fresh = false
	}
	return append(unmaps, releases...)
}

// skipLost gives up the handle of the operation that failed, so that the others still go back. Its
// pages stay busy for ever if it is mapped.
func (c *Core) skipLost(ops []Op) []Op {
	var rest []Op
	given := map[int32]bool{} // up
	giveUp := func(id int32) {
		given[id] = true
		if h := &c.pages.handles[id]; !h.lost {
			h.lost = true
			c.lostBytes += c.bytes(h.run.Pages)
		}
	}
	for i, op := range ops {
		switch {
		case i > 0:
			if op.Verb != Release || !given[op.Index] {
				rest = append(rest, op)
			}
		case op.Verb == Unmap: // its Index says nothing: the pages know their handles
			for at := op.Run.First; at < op.Run.First+op.Run.Pages; at++ {
				giveUp(c.pages.table[at].handle)
			}
		case op.Verb == Release || op.Verb == Free:
			giveUp(op.Index)
		}
	}
	return rest
}

// freeWindow gives the pages of a failed window back: those that still have an untouched handle become
// free under the tag they had, those without become holes, the rest stays busy for the rollback.
func (c *Core) freeWindow(j *Job) {
	inUndo := func(id int32) bool {
		return slices.ContainsFunc(j.Ops, func(op Op) bool { return op.Index == id && (op.Verb == Map || op.Verb == Create) })
	}
	end := j.window.First + j.window.Pages
	for at := j.window.First; at < end; {
		id, first := c.pages.table[at].handle, at
		for at < end && c.pages.table[at].handle == id {
			at++
		}
		r := Run{first, at - first}
		switch {
		case id == heap.None:
			c.pages.setState(r, hole, 0)
		case !inUndo(id):
			c.giveParts(j, r)
		}
	}
}
