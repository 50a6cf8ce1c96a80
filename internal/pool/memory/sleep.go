package memory

import (
	"fmt"

	"github.com/go-vram/vram/internal/heap"
)

// A handle is asleep from the plan that takes its physical memory away until the plan that brings memory back has given access to
// all of it. Its pages stay lent, and their entries keep its number, so that new memory finds its place:
//
//	mapped --Unmap--> unmapped --Release--> without memory --Create, Map, Access--> mapped
//
// A call that fails leaves it at one of these points, from which both plans go on. Only handles sleep whose pages are all lent to
// one client; nothing but the two plans, a free of the pages and the end of the pool touches them meanwhile.

// books enters the operations of a job in another way than Finish does. Programs without such jobs have no code for it.
type books interface {
	// finish is as Memory.Finish.
	finish(m *Memory, j *Job, done int, failed bool) Outcome
}

// sleepers is what Memory does in another way once a client has slept, likewise; nil before.
type sleepers interface {
	free(m *Memory, r Run, tag Tag)
	closing(m *Memory)
	check(m *Memory) error
}

// sleep implements sleepers.
type sleep struct{}

// SleepingBytes are those of handles whose memory went back to the driver and whose pages are lent.
func (hs *handles) SleepingBytes() int64 { return hs.sleepingBytes }

// PlanSleep makes the job that gives the physical memory of a client's pages back to the driver. A handle that holds pages of others
// as well stays. The job has no operations where nothing is left to give back.
func (m *Memory) PlanSleep(j *Job, id Client) {
	m.sleepers, j.books, j.startBytes = sleep{}, sleeping{}, m.reservedBytes
	var releases []Op
	m.eachHandle(id, func(n int32, h *handle) {
		h.asleep = true
		if h.mapd {
			j.unmap(h.run)
		}
		if h.live {
			releases = append(releases, Op{Verb: Release, Index: n, Handle: h.id, Run: h.run})
		}
	})
	j.Ops = append(j.Ops, releases...)
}

// unmap unmaps a handle, by one call with the one before it where they lie side by side.
func (j *Job) unmap(r Run) {
	if n := len(j.Ops); n > 0 && j.Ops[n-1].Run.End() == r.First {
		j.Ops[n-1].Run.Pages += r.Pages
		return
	}
	j.Ops = append(j.Ops, Op{Verb: Unmap, Run: r})
}

// WakeBytes are the physical memory that a client's sleeping pages lack.
func (m *Memory) WakeBytes(id Client) (bytes int64) {
	m.eachHandle(id, func(_ int32, h *handle) {
		if h.asleep && !h.live {
			bytes += m.Bytes(h.run.Pages)
		}
	})
	return bytes
}

// PlanWake makes the job that gives a client's sleeping pages physical memory again, at the same addresses. Where it fails its memory
// goes back as a whole: what it made, and what was there.
func (m *Memory) PlanWake(j *Job, id Client) {
	j.books, j.startBytes = waking{id}, m.reservedBytes
	var open Run // pages side by side that have no access yet
	m.eachHandle(id, func(n int32, h *handle) {
		if !h.asleep {
			return
		}
		if open.Pages > 0 && open.End() != h.run.First {
			j.Ops = append(j.Ops, Op{Verb: Access, Run: open})
			open = Run{}
		}
		if !h.live {
			j.Ops = append(j.Ops, Op{Verb: Create, Index: n, Run: h.run})
		}
		if !h.mapd {
			j.Ops = append(j.Ops, Op{Verb: Map, Index: n, Run: h.run, Handle: h.id})
		}
		if open.Pages == 0 {
			open.First = h.run.First
		}
		open.Pages += h.run.Pages
	})
	if open.Pages > 0 {
		j.Ops = append(j.Ops, Op{Verb: Access, Run: open})
	}
}

// eachHandle visits the handles of which all pages are lent to a client, in order of address.
func (m *Memory) eachHandle(id Client, visit func(number int32, h *handle)) {
	for at := uint32(0); at < m.top(); {
		p := &m.pages[at]
		if p.state != Lent || p.client != id {
			at++
			continue
		}
		h := &m.handleOf[p.handle]
		if h.run.First == at && m.LentTo(h.run, id) {
			visit(p.handle, h)
		}
		at = max(at+1, h.run.End())
	}
}

// sleeping are the books of a job of PlanSleep.
type sleeping struct{}

// finish leaves everything as it is after a failure: the next plan goes on from there.
func (sleeping) finish(m *Memory, j *Job, done int, _ bool) Outcome {
	before := m.reservedBytes
	for _, op := range j.Ops[:done] {
		switch op.Verb {
		case Unmap:
			for at := op.Run.First; at < op.Run.End(); {
				h := &m.handleOf[m.pages[at].handle]
				h.mapd = false
				at += h.run.Pages
			}
		case Release:
			h := &m.handleOf[op.Index]
			h.live, h.id = false, 0
			m.reservedBytes -= m.Bytes(h.run.Pages)
			m.sleepingBytes += m.Bytes(h.run.Pages)
		case Create, Map, Access, AllocPlain, FreePlain, Await:
		}
	}
	return Outcome{GrownBytes: m.reservedBytes - before, FailedAt: Await, StartBytes: j.startBytes}
}

// waking are the books of a job of PlanWake for a client.
type waking struct{ client Client }

// finish has all of the client's handles sleep again after a failure.
func (b waking) finish(m *Memory, j *Job, done int, failed bool) Outcome {
	before := m.reservedBytes
	for _, op := range j.Ops[:done] {
		switch op.Verb {
		case Create:
			h := &m.handleOf[op.Index]
			h.live, h.id = true, op.Handle
			m.madeHandle(op.Run.Pages)
			m.sleepingBytes -= m.Bytes(op.Run.Pages)
		case Map:
			m.handleOf[op.Index].mapd = true
		case Access:
			for at := op.Run.First; at < op.Run.End(); {
				h := &m.handleOf[m.pages[at].handle]
				h.asleep = false
				at += h.run.Pages
			}
		case Unmap, Release, AllocPlain, FreePlain, Await:
		}
	}
	out := Outcome{GrownBytes: m.reservedBytes - before, FailedAt: Await, StartBytes: j.startBytes}
	if failed {
		m.PlanSleep(&out.Undo, b.client)
	}
	return out
}

// free is Memory.Free: pages without memory become holes.
func (sleep) free(m *Memory, r Run, tag Tag) {
	for at, end := r.First, r.End(); at < end; {
		number, first := m.pages[at].handle, at
		for at < end && m.pages[at].handle == number {
			at++
		}
		part := Run{First: first, Pages: at - first}
		if m.handleOf[number].asleep {
			m.abandon(number, part)
			continue
		}
		m.addFree(part, tag)
	}
}

// abandon takes pages from a sleeping handle, which does not wake any more. What the driver would not take back is lost until Close.
func (m *Memory) abandon(number int32, r Run) {
	h := &m.handleOf[number]
	if h.live {
		m.loseHandle(number)
	}
	if h.mapd { // an unmap has failed
		m.setState(r, Busy, 0)
		return
	}
	m.setHandle(r, heap.None)
	m.setState(r, Hole, 0)
	for _, p := range m.of(h.run) {
		if p.handle == number {
			return
		}
	}
	m.forget(number)
}

// forget drops a sleeping handle that no page names any more.
func (m *Memory) forget(number int32) {
	h := &m.handleOf[number]
	h.asleep = false
	if !h.live {
		m.sleepingBytes -= m.Bytes(h.run.Pages)
		m.dropHandle(number)
	}
}

// closing makes holes of all sleeping pages that have nothing mapped: the pool is about to give everything back.
func (sleep) closing(m *Memory) {
	for number := range m.handleOf {
		h := &m.handleOf[number]
		if !h.asleep {
			continue
		}
		for at := h.run.First; !h.mapd && at < h.run.End(); at++ {
			if page := (Run{First: at, Pages: 1}); m.pages[at].handle == int32(number) {
				m.setHandle(page, heap.None)
				m.setState(page, Hole, 0)
			}
		}
		m.forget(int32(number))
	}
}

// check is the part of Memory.Check for handles that are asleep.
func (sleep) check(m *Memory) error {
	var asleep int64
	for number := range m.handleOf {
		h := &m.handleOf[number]
		if !h.asleep {
			continue
		}
		if !h.live {
			asleep += m.Bytes(h.run.Pages)
		}
		for _, p := range m.of(h.run) {
			if p.handle == int32(number) && p.state != Lent && p.state != Busy {
				return fmt.Errorf("pool: handle %d is asleep, and a page of it has state %d", number, p.state)
			}
		}
	}
	if asleep != m.sleepingBytes {
		return fmt.Errorf("pool: handles of %d bytes are asleep, the books say %d", asleep, m.sleepingBytes)
	}
	return nil
}
