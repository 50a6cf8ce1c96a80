package memory

import (
	"fmt"

	"github.com/go-vram/vram/internal/heap"
)

// A handle is asleep from the plan that takes its physical memory away until the plan that brings memory back has given access
// to all of it. Its pages stay lent, and their entries keep its number, so that new memory finds its place:
//
//	mapped --Unmap--> unmapped --Release--> without memory --Create, Map, Access--> mapped
//
// A call that fails leaves it at one of these points, from which either plan can start. Only handles sleep whose pages are all
// lent to one client. Until they wake, only the two plans, a free of their pages and the end of the pool change them. Pages
// that are freed while a job of either plan is in flight are busy until it ends. A handle does not wake once any page of it was
// freed.

// books enters the jobs of one kind, as Memory.finish enters the others. A program that plans no such job links no code of it.
type books interface {
	finish(m *Memory, j *Job, done int, failed bool) (undo Job)
}

// sleepers replaces parts of Memory once a client has slept, for the same reason; nil before.
type sleepers interface {
	free(m *Memory, r Run, tag Tag)
	closing(m *Memory)
	check(m *Memory) error
}

// sleep implements sleepers.
type sleep struct {
	inFlight bool   // a job of PlanSleep or PlanWake
	freed    []Part // while one was
}

// SleepingBytes returns the bytes of handles without memory whose pages are lent.
func (hs *handles) SleepingBytes() int64 { return hs.sleepingBytes }

// PlanSleep makes the job that gives the physical memory of a client's pages back to the driver. A handle that also holds pages
// of others stays. The job has no operations if nothing is left to give back.
func (m *Memory) PlanSleep(j *Job, id Client) {
	s, _ := m.sleepers.(*sleep)
	if s == nil {
		s = &sleep{}
		m.sleepers = s
	}
	j.books, j.startBytes = sleeping{s}, m.reservedBytes
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
	s.inFlight = len(j.Ops) > 0
}

// WakeBytes returns how much physical memory a client's sleeping handles lack.
func (m *Memory) WakeBytes(id Client) (bytes int64) {
	m.eachHandle(id, func(_ int32, h *handle) {
		if h.asleep && !h.live {
			bytes += m.Bytes(h.run.Pages)
		}
	})
	return bytes
}

// PlanWake makes the job that gives a client's sleeping handles physical memory again, at the same addresses. If it fails all
// memory of the client goes back to the driver, old and new.
func (m *Memory) PlanWake(j *Job, id Client) {
	s, _ := m.sleepers.(*sleep)
	if s == nil { // nobody has slept
		return
	}
	j.books, j.startBytes = waking{s, id}, m.reservedBytes
	var open Run // adjacent pages without access
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
	s.inFlight = len(j.Ops) > 0
}

// eachHandle visits the handles that have all their pages, each lent to a client, in order of address. Pages of a sleeping
// handle may have been freed, and filled again with other handles.
func (m *Memory) eachHandle(id Client, visit func(number int32, h *handle)) {
	for at := uint32(0); at < m.top(); at++ {
		p := &m.pages[at]
		if p.state != Lent || p.client != id {
			continue
		}
		r, number := Run{First: at, Pages: 1}, p.handle
		for ; r.End() < m.top() && m.pages[r.End()].handle == number && m.LentTo(Run{First: r.End(), Pages: 1}, id); r.Pages++ {
			at++
		}
		if h := &m.handleOf[number]; h.run == r {
			visit(number, h)
		}
	}
}

// sleeping enters a job of PlanSleep.
type sleeping struct{ *sleep }

// finish leaves everything as a failure left it: the next plan starts from there.
func (b sleeping) finish(m *Memory, j *Job, done int, _ bool) (undo Job) {
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
	b.ended(m)
	return Job{}
}

// waking enters a job of PlanWake for a client.
type waking struct {
	*sleep
	client Client
}

// finish puts all of the client's handles back to sleep after a failure.
func (b waking) finish(m *Memory, j *Job, done int, failed bool) (undo Job) {
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
	b.ended(m)
	if failed {
		m.PlanSleep(&undo, b.client)
	}
	return undo
}

// ended frees the pages that were returned while a job was in flight.
func (s *sleep) ended(m *Memory) {
	freed := s.freed
	s.inFlight, s.freed = false, nil
	for _, p := range freed {
		s.free(m, p.Run, p.Tag)
	}
}

// free implements Memory.Free: pages without memory become holes, and pages of a job in flight stay busy until it ends.
func (s *sleep) free(m *Memory, r Run, tag Tag) {
	for at, end := r.First, r.End(); at < end; {
		number, first := m.pages[at].handle, at
		for at < end && m.pages[at].handle == number {
			at++
		}
		part := Run{First: first, Pages: at - first}
		switch asleep := m.handleOf[number].asleep; {
		case asleep && s.inFlight:
			m.setState(part, Busy, 0)
			s.freed = append(s.freed, Part{part, tag})
		case asleep:
			m.abandon(number, part)
		default:
			m.addFree(part, tag)
		}
	}
}

// abandon frees pages of a sleeping handle, which then does not wake. Memory that the driver did not take back is lost until
// Close.
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

// forget drops a sleeping handle that no page names.
func (m *Memory) forget(number int32) {
	h := &m.handleOf[number]
	h.asleep = false
	if !h.live {
		m.sleepingBytes -= m.Bytes(h.run.Pages)
		m.dropHandle(number)
	}
}

// closing makes holes of all sleeping pages without a mapping: the pool is about to give everything back.
func (*sleep) closing(m *Memory) {
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

// check checks the sleeping handles.
func (*sleep) check(m *Memory) error {
	var asleep int64
	for number := range m.handleOf {
		h := &m.handleOf[number]
		if !h.asleep {
			continue
		}
		if !h.live {
			asleep += m.Bytes(h.run.Pages)
		}
		named := false
		for _, p := range m.of(h.run) {
			if p.handle != int32(number) {
				continue
			}
			if named = true; p.state != Lent && p.state != Busy {
				return fmt.Errorf("pool: handle %d is asleep, and a page of it has state %d", number, p.state)
			}
		}
		if !named {
			return fmt.Errorf("pool: handle %d is asleep, and no page names it", number)
		}
	}
	if asleep != m.sleepingBytes {
		return fmt.Errorf("pool: handles of %d bytes are asleep, the books say %d", asleep, m.sleepingBytes)
	}
	return nil
}
