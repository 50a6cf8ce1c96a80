package memory

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/heap"
)

// MappedRun is a run of pages that have a handle, and of which the books say the same.
type MappedRun struct {
	Run
	State   State
	Client  Client      // the holder of lent pages, the tag's client of free ones
	Asleep  bool        // without physical memory
	Handles int         // that begin in it
	At      cudadrv.Ptr // of the first page, in a plain segment
}

// EachMapped visits the pages that have a handle, in order, as the last job that ended has left them.
func (m *Memory) EachMapped(visit func(MappedRun)) {
	for at := uint32(0); at < m.top(); {
		p := &m.pages[at]
		if p.handle == heap.None {
			at++
			continue
		}
		r := MappedRun{Run: Run{First: at, Pages: 1}, State: p.state, Client: p.client, Asleep: m.asleep(p)}
		if p.state == Free {
			r.Run = m.freeRun(at)
		} else {
			for end := r.End(); end < m.top() && m.pages[end].handle != heap.None && m.like(&m.pages[end], &r); end++ {
				r.Pages++
			}
		}
		h := &m.handleOf[p.handle]
		r.At = h.at + cudadrv.Ptr(at-h.run.First)*cudadrv.Ptr(m.pageBytes)
		for ; at < r.End(); at++ {
			if m.handleOf[m.pages[at].handle].run.First == at {
				r.Handles++
			}
		}
		visit(r)
	}
}

// asleep reports whether a page that has a handle has no physical memory.
func (m *Memory) asleep(p *page) bool {
	h := &m.handleOf[p.handle]
	return h.asleep && !h.live
}

// like reports whether the books say the same of a page, which is not free, as of a run.
func (m *Memory) like(p *page, r *MappedRun) bool {
	return p.state == r.State && p.client == r.Client && m.asleep(p) == r.Asleep
}
