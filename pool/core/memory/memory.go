package memory

import (
	"slices"

	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
)

// Memory is the arena of one device: its pages, the free runs among them, and the handles that are mapped there.
type Memory struct {
	finder
	handles handles

	// Scratch, within one call.
	firsts    []uint32
	found     []victim
	victimIDs []int32
	missing   []Run
}

// New makes the books of an arena of that many pages, at most those that the heaps of the clients can name: what is beyond stays a
// hole for ever. With plain the arena is made of segments: page numbers are names only, and where a segment lies the driver decides.
func New(pageBytes int64, maxPages uint32, plain bool) *Memory {
	maxPages = min(maxPages, heap.MostPages(uint32(max(1, pageBytes>>sizeclass.UnitShift)))) //nolint:gosec // a page is shorter than the arena
	return &Memory{
		finder:  finder{table: newTable(), maxPages: maxPages, plain: plain},
		handles: handles{pageBytes: pageBytes},
	}
}

// MaxPages is the length of the arena.
func (m *Memory) MaxPages() uint32 { return m.maxPages }

// Plain reports whether the memory is made of plain segments.
func (m *Memory) Plain() bool { return m.plain }

// PageBytes is the length of a page.
func (m *Memory) PageBytes() int64 { return m.handles.pageBytes }

// Bytes are those of that many pages.
func (m *Memory) Bytes(pages uint32) int64 { return m.handles.bytes(pages) }

// Fit finds a free run of at least that many pages, about the shortest of those that the client may use without a wait: clean ones
// and its own. Of equally short runs its own is taken.
func (m *Memory) Fit(id Client, count uint32) (Part, bool) {
	first, ok := m.fit(id, count)
	if !ok {
		return Part{}, false
	}
	return Part{m.freeRun(first), m.pages[first].tag()}, true
}

// Lend gives a client pages that lie in one free run, which begins at first.
func (m *Memory) Lend(first uint32, r Run, to Client) { m.takeFree(first, r, Lent, to) }

// Free makes pages free that were lent or busy.
func (m *Memory) Free(r Run, tag Tag) { m.addFree(r, tag) }

// FreeParts makes pages free, each under the tag that it had when it was taken.
func (m *Memory) FreeParts(parts Parts, r Run) {
	for at, end := r.First, r.End(); at < end; {
		tag, until := parts.tagAt(at, end)
		m.addFree(Run{First: at, Pages: until - at}, tag)
		at = until
	}
}

// Transfer lends pages to another client, or to the first one where they are busy with a job.
func (m *Memory) Transfer(r Run, to Client) { m.setState(r, Lent, to) }

// LentTo reports whether all pages of a run are lent to a client.
func (m *Memory) LentTo(r Run, id Client) bool {
	if top := m.top(); r.Pages == 0 || r.Pages > top || r.First > top-r.Pages {
		return false
	}
	entries := m.of(r)
	for i := range entries {
		if p := &entries[i]; p.state != Lent || p.client != id {
			return false
		}
	}
	return true
}

// Pass cleans the free runs of a client up to a fence, which has passed, and returns how many those were.
func (m *Memory) Pass(id Client, f Fence) int { return m.pass(id, f, &m.firsts) }

// SetHome notes the client that returned free pages and may have them back.
func (m *Memory) SetHome(r Run, id Client) {
	entries := m.of(r)
	for i := range entries {
		entries[i].home = id
	}
}

// LendHome lends free pages to the clients that returned them, where those take them. lent is told of each run.
func (m *Memory) LendHome(takes func(Client) bool, lent func(Client, Run)) {
	m.eachFree(Run{Pages: m.top()}, func(r Run) {
		first := r.First // of what is still free of it
		for at := r.First; at < r.End(); {
			home, from := m.pages[at].home, at
			for at < r.End() && m.pages[at].home == home {
				at++
			}
			if takes(home) {
				run := Run{First: from, Pages: at - from}
				m.Lend(first, run, home)
				lent(home, run)
				first = at
			}
		}
	})
}

// TaggedClients are the clients under whose tags pages are free, rising.
func (m *Memory) TaggedClients() []Client {
	var ids []Client
	for id, x := range m.tagged {
		if x.bins.Count() > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// AnyTagged reports whether pages are free under the tags of any client that is asked for.
func (m *Memory) AnyTagged(want func(Client) bool) bool {
	for id, x := range m.tagged {
		if x.bins.Count() > 0 && want(id) {
			return true
		}
	}
	return false
}

// Forget drops the index of a client that is no more and has no free pages.
func (m *Memory) Forget(id Client) {
	if x := m.tagged[id]; x != nil && x.bins.Count() == 0 {
		delete(m.tagged, id)
	}
}

// Victims are whole handles in clean runs outside a run, the longest first, that come to that many bytes, or all if they do not. The
// result is valid until the next call.
func (m *Memory) Victims(bytes int64, outside Run) (ids []int32, sumBytes int64) {
	if bytes <= 0 {
		return nil, 0
	}
	ids = m.victims(outside)
	for i, id := range ids {
		if sumBytes += m.Bytes(m.handles.all[id].run.Pages); sumBytes >= bytes {
			return ids[:i+1], sumBytes
		}
	}
	return ids, sumBytes
}

type victim struct {
	handle   int32
	pages    uint32
	runPages uint32
	first    uint32
}

// victims sorts the longest first, since each costs the same whatever its length, and of equals those of the shortest runs.
func (m *Memory) victims(outside Run) []int32 {
	found := m.found[:0]
	m.clean.bins.Each(m.links, 1, func(i int32) bool {
		run := m.freeRun(uint32(i))
		for at := run.First; at < run.End(); {
			h := m.pages[at].handle
			r := m.handles.all[h].run
			if run.Covers(r) && !r.Overlaps(outside) {
				found = append(found, victim{h, r.Pages, run.Pages, r.First})
			}
			at = r.End()
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
	m.found = found
	ids := m.victimIDs[:0]
	for _, v := range found {
		ids = append(ids, v.handle)
	}
	m.victimIDs = ids
	return ids
}

// missingRuns are the holes of a window. The result is valid until the next call.
func (m *Memory) missingRuns(w Run) []Run {
	runs := m.missing[:0]
	isMissing := func(at uint32) bool { return at >= m.top() || m.pages[at].handle == heap.None }
	for at := w.First; at < w.End(); {
		if !isMissing(at) {
			at++
			continue
		}
		first := at
		for at < w.End() && isMissing(at) {
			at++
		}
		runs = append(runs, Run{First: first, Pages: at - first})
	}
	m.missing = runs
	return runs
}
