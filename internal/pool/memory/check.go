package memory

import (
	"fmt"

	"github.com/go-vram/vram/internal/heap"
)

// Check holds the books against the invariants of the package comment. It visits every page. jobInFlight reports whether pages
// may be busy; pages lent to clients are counted into held.
func (m *Memory) Check(jobInFlight bool, held map[Client]uint64) error {
	var counts [4]uint64
	returned := uint64(0)
	for i := range m.pages {
		p := &m.pages[i]
		counts[p.state]++
		if p.home != 0 {
			returned++
		}
		if p.state == Lent {
			held[p.client]++
		}
		if err := m.checkPage(uint32(i), p, jobInFlight); err != nil {
			return err
		}
	}
	if counts != m.counts || returned != m.returned {
		return fmt.Errorf("pool: counted pages %v, and %d returned, the books say %v and %d", counts, returned, m.counts, m.returned)
	}
	if err := m.checkHandles(); err != nil {
		return err
	}
	if m.sleepers != nil {
		if err := m.sleepers.check(m); err != nil {
			return err
		}
	}
	if err := m.checkHoles(); err != nil {
		return err
	}
	return m.checkRuns(counts[Free])
}

func (m *Memory) checkPage(at uint32, p *page, jobInFlight bool) error {
	mapped := p.handle != heap.None
	switch p.state {
	case Hole:
		if mapped || p.client != 0 {
			return fmt.Errorf("pool: page %d is a hole with handle %d, of client %d", at, p.handle, p.client)
		}
	case Free, Lent:
		if !mapped {
			return fmt.Errorf("pool: page %d is in use without a handle", at)
		}
	case Busy:
		if p.client != 0 {
			return fmt.Errorf("pool: page %d is busy, and of client %d", at, p.client)
		}
		if !jobInFlight && (!mapped || !m.handleOf[p.handle].lost) {
			return fmt.Errorf("pool: page %d is busy without a job", at)
		}
	}
	if p.state != Free && p.fence != 0 {
		return fmt.Errorf("pool: page %d of state %d has fence %d", at, p.state, p.fence)
	}
	if free := m.free.next(at, at+1, true) == at; free != (p.state == Free) {
		return fmt.Errorf("pool: page %d of state %d has a wrong bit", at, p.state)
	}
	return nil
}

func (m *Memory) checkHandles() error {
	var reserved, lost int64
	for id := range m.handleOf {
		h := &m.handleOf[id]
		if !h.live {
			continue
		}
		reserved += m.Bytes(h.run.Pages)
		if h.lost {
			lost += m.Bytes(h.run.Pages)
		}
		for at := h.run.First; h.mapd && at < h.run.End(); at++ {
			if m.pages[at].handle != int32(id) {
				return fmt.Errorf("pool: handle %d is mapped at page %d, the page says %d", id, at, m.pages[at].handle)
			}
		}
	}
	if reserved != m.reservedBytes || lost != m.lostBytes {
		return fmt.Errorf("pool: handles of %d bytes exist, %d of them lost, the books say %d and %d",
			reserved, lost, m.reservedBytes, m.lostBytes)
	}
	return nil
}

func (m *Memory) checkRuns(freePages uint64) error {
	var inRuns uint64
	runs := 0
	top := m.top()
	for at := m.free.next(0, top, true); at < top; at = m.free.next(at, top, true) {
		p := m.pages[at]
		if p.run == 0 || at+p.run > top || m.pages[at+p.run-1].run != p.run {
			return fmt.Errorf("pool: the free run at page %d has length %d at its start", at, p.run)
		}
		if next := at + p.run; next < top && m.pages[next].state == Free && m.pages[next].client == p.client {
			return fmt.Errorf("pool: free runs at pages %d and %d are not merged", at, next)
		}
		inRuns += uint64(p.run)
		runs++
		at += p.run
	}
	if indexed := m.FreeRuns(); inRuns != freePages || runs != indexed {
		return fmt.Errorf("pool: %d free pages in %d runs, the books say %d in %d", inRuns, runs, freePages, indexed)
	}
	return nil
}

// checkHoles holds the index of the holes against the pages.
func (m *Memory) checkHoles() error {
	entries := m.holeRuns.Len()
	top := m.top()
	for at := uint32(0); at < top; at++ {
		if m.pages[at].state != Hole {
			continue
		}
		r := Run{First: at}
		for at < top && m.pages[at].state == Hole {
			at++
		}
		if r.Pages = at - r.First; m.pages[r.First].run != r.Pages || m.pages[at-1].run != r.Pages {
			return fmt.Errorf("pool: the holes at page %d are %d, the books say %d and %d",
				r.First, r.Pages, m.pages[r.First].run, m.pages[at-1].run)
		}
		if at == top {
			break
		}
		keys := []holeKey{{0, r.Pages, r.First}}
		if id := m.holderBefore(r.First); id != 0 {
			keys = append(keys, holeKey{id, r.Pages, r.First})
		}
		for _, k := range keys {
			if _, found := m.holeRuns.Get(k); !found {
				return fmt.Errorf("pool: the holes at page %d, after pages of client %d, are not in the index", k.first, k.after)
			}
		}
		entries -= len(keys)
	}
	if entries != 0 {
		return fmt.Errorf("pool: the index of the holes has %d entries too many", entries)
	}
	return nil
}
