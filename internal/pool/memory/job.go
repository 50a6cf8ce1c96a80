package memory

import (
	"cmp"
	"slices"

	"github.com/go-vram/vram/cudadrv"
)

// Verb is the kind of an operation.
type Verb uint8

// The verbs of driver operations.
const (
	Unmap      Verb = iota // pages of whole handles
	Create                 // a handle of that many pages
	Map                    // a handle at a page
	Access                 // pages, after they were mapped
	Release                // a handle that is not mapped
	AllocPlain             // a plain segment: memory and address in one
	FreePlain              // a plain segment
	Await                  // changes no page: the waiter's stream waits for another client's fence
)

// Op is one driver call.
type Op struct {
	Verb    Verb
	Run     Run            // all but Release and Await
	Index   int32          // the number of the handle: Create, Map, Release, AllocPlain, FreePlain
	Handle  cudadrv.Handle // Create: out; Release, Map: in, or 0 for the handle of the preceding Create
	Address cudadrv.Ptr    // AllocPlain: out; FreePlain: in
	Of      Client         // Await: whose fence
	Fence   Fence          // Await
}

// Purpose is the reason for a job.
type Purpose uint8

// The purposes.
const (
	Nothing  Purpose = iota // it has no operations
	Fill                    // makes a window free
	Shrink                  // gives handles back to the driver
	Rollback                // gives back the handles that a failed job left
	CloseAll                // gives everything back
)

// Job is a list of driver calls to be performed in order up to the first that fails. One job may be in flight at a time.
type Job struct {
	Ops     []Op
	Waiter  Client // of the Await operations, 0 without any
	Purpose Purpose
	Window  Run   // of Fill
	Parts   Parts // tagged pages that the window took

	startBytes int64 // reserved when it was planned
	books      books // that enter it; nil: Finish does
}

// Created returns how many new handles a job makes.
func (j *Job) Created() int { return j.count(Create) }

// Moved returns how many handles a job moves, or gives back for others.
func (j *Job) Moved() int { return j.count(Map) - j.count(Create) + j.count(Release) }

func (j *Job) count(v Verb) (n int) {
	for i := range j.Ops {
		if j.Ops[i].Verb == v {
			n++
		}
	}
	return n
}

// Plan is how a window is to be filled.
type Plan struct {
	Window  Run
	Victims []int32 // handles that are moved into the window or released
	For     Client  // waits for the fences of all others whose pages the window takes
	// MergePages is the length from which on a victim moves as it is; MaxHandlePages the most of a new handle.
	MergePages, MaxHandlePages uint32
}

// PlanFill makes the pages of a window busy, and the job that fills it from the victims, then from new handles. A plain segment
// is made as a whole, after victims were freed for it; where the window is part of one that is there already, the job only
// awaits the fences of its pages.
func (m *Memory) PlanFill(j *Job, p Plan) {
	j.Purpose, j.Window, j.startBytes = Fill, p.Window, m.reservedBytes
	missing := m.missingRuns(p.Window)
	m.takeWindow(j, p.Window)
	j.await(p.For)
	if m.plain {
		m.freeOps(j, p.Victims)
		if len(missing) > 0 {
			j.Ops = append(j.Ops, Op{Verb: AllocPlain, Index: m.addHandle(p.Window.Pages), Run: p.Window})
		}
		return
	}
	m.unmapOps(j, p.Victims)
	fill, left := m.fillOps(p, missing)
	m.releaseOps(j, left)
	j.Ops = append(j.Ops, fill...)
}

// fillOps maps victims, and then new handles, into the missing runs. left are the victims that find no place.
func (m *Memory) fillOps(p Plan, missing []Run) (fill []Op, left []int32) {
	left = slices.Clone(p.Victims)
	slices.SortStableFunc(left, func(a, b int32) int { return cmp.Compare(m.handleOf[b].run.Pages, m.handleOf[a].run.Pages) })
	fill = make([]Op, 0, 4*len(missing)+len(p.Victims))
	for _, hole := range missing {
		least, rest := min(p.MergePages, hole.Pages), hole
		for i := 0; i < len(left); {
			h := &m.handleOf[left[i]]
			if k := h.run.Pages; k > rest.Pages || k < least {
				i++
				continue
			}
			var at Run
			at, rest = rest.Front(h.run.Pages)
			fill = append(fill, Op{Verb: Map, Run: at, Index: left[i], Handle: h.id})
			left = slices.Delete(left, i, i+1)
		}
		fill = m.createOps(fill, rest, p.MaxHandlePages)
		fill = append(fill, Op{Verb: Access, Run: hole})
	}
	return fill, left
}

// createOps cuts a run into new handles as equal as possible.
func (m *Memory) createOps(ops []Op, r Run, maxPages uint32) []Op {
	if r.Pages == 0 {
		return ops
	}
	for n := (r.Pages + maxPages - 1) / maxPages; n > 0; n-- {
		var piece Run
		piece, r = r.Front((r.Pages + n - 1) / n)
		id := m.addHandle(piece.Pages)
		ops = append(ops, Op{Verb: Create, Index: id, Run: piece}, Op{Verb: Map, Index: id, Run: piece})
	}
	return ops
}

// await adds an Await for the fences of every other client that has tagged pages of the job.
func (j *Job) await(waiter Client) {
	for _, t := range j.Parts.latest(waiter) {
		j.Ops = append(j.Ops, Op{Verb: Await, Of: t.Client, Fence: t.Fence})
		j.Waiter = waiter
	}
}

// Take makes the pages of a window busy that is free as it is, and returns their tags.
func (m *Memory) Take(window Run) Parts {
	var j Job
	m.takeWindow(&j, window)
	return j.Parts
}

// takeWindow makes the pages of a window busy and keeps the tags that its free pages had.
func (m *Memory) takeWindow(j *Job, w Run) {
	end := w.End()
	m.extend(end)
	for at := w.First; at < end; {
		if m.pages[at].state == Hole {
			stop := m.free.next(at, end, true)
			m.setState(Run{First: at, Pages: stop - at}, Busy, 0)
			at = stop
			continue
		}
		at = m.takePart(j, at, end)
	}
}

// takePart makes the part below end of the free run at that page busy. A window never starts inside a run unless the run
// reaches beyond it to the left; then its first page is found by the run's end.
func (m *Memory) takePart(j *Job, at, end uint32) uint32 {
	stop := m.free.next(at, m.top(), false)
	first := at
	for e := stop; e > at; { // runs side by side with different tags, from the right
		first = e - m.pages[e-1].run
		stop, e = e, first
	}
	part := Part{Run{First: at, Pages: min(stop, end) - at}, m.pages[first].tag()}
	if part.Tag.Client != 0 {
		j.Parts = append(j.Parts, part)
	}
	m.takeFree(first, part.Run, Busy, 0)
	return part.Run.End()
}

// unmapOps unmaps handles, one call for those that lie side by side, and makes their pages busy.
func (m *Memory) unmapOps(j *Job, ids []int32) {
	runs := make([]Run, len(ids))
	for i, id := range ids {
		runs[i] = m.handleOf[id].run
		m.takePart(j, runs[i].First, runs[i].End())
	}
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Compare(a.First, b.First) })
	for _, r := range runs {
		j.unmap(r)
	}
}

// unmap unmaps a handle, by the same call as the handle before it if they are adjacent.
func (j *Job) unmap(r Run) {
	if n := len(j.Ops); n > 0 && j.Ops[n-1].Verb == Unmap && j.Ops[n-1].Run.End() == r.First {
		j.Ops[n-1].Run.Pages += r.Pages
		return
	}
	j.Ops = append(j.Ops, Op{Verb: Unmap, Run: r})
}

// releaseOps gives handles back to the driver that are not mapped any more.
func (m *Memory) releaseOps(j *Job, ids []int32) {
	for _, id := range ids {
		h := &m.handleOf[id]
		j.Ops = append(j.Ops, Op{Verb: Release, Index: id, Handle: h.id, Run: h.run})
	}
}

// freeOps frees segments that are free as a whole, and makes their pages busy.
func (m *Memory) freeOps(j *Job, ids []int32) {
	for _, id := range ids {
		h := &m.handleOf[id]
		m.takePart(j, h.run.First, h.run.End())
		j.Ops = append(j.Ops, Op{Verb: FreePlain, Index: id, Run: h.run, Address: h.at})
	}
}

// PlanShrink makes the job that gives handles back to the driver.
func (m *Memory) PlanShrink(j *Job, ids []int32) {
	j.Purpose = Shrink
	if m.plain {
		m.freeOps(j, ids)
		return
	}
	m.unmapOps(j, ids)
	m.releaseOps(j, ids)
}

// PlanClose makes the job that gives all memory back, live or not, and all mapped pages part of it.
func (m *Memory) PlanClose(j *Job) {
	j.Purpose = CloseAll
	if m.sleepers != nil {
		m.sleepers.closing(m)
	}
	for id := range m.handleOf {
		h := &m.handleOf[id]
		if !h.live {
			continue
		}
		if m.plain {
			j.Ops = append(j.Ops, Op{Verb: FreePlain, Index: int32(id), Run: h.run, Address: h.at})
			continue
		}
		if h.mapd {
			j.Ops = append(j.Ops, Op{Verb: Unmap, Run: h.run})
		}
		j.Ops = append(j.Ops, Op{Verb: Release, Index: int32(id), Handle: h.id, Run: h.run})
	}
	if len(j.Ops) == 0 {
		return
	}
	m.eachFree(Run{Pages: m.top()}, func(r Run) { m.takeFree(r.First, r, Busy, 0) })
	for at := range m.top() {
		if m.pages[at].state == Lent {
			m.setState(Run{First: at, Pages: 1}, Busy, 0)
		}
	}
}
