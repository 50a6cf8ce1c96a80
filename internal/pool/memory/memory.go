package memory

import (
	"cmp"
	"slices"

	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
)

// Memory is the arena of one device: its pages, the free runs among them, and the handles that are mapped there.
type Memory struct {
	finder
	handles
	sleepers sleepers

	// Scratch, within one call.
	firsts    []uint32
	found     []victim
	victimIDs []int32
	missing   []Run
}

// New makes the books of an arena of maxPages pages, or as many as the clients' heaps can name; the rest stays a hole for ever.
// With plain the arena is made of segments: page numbers are names only, and the driver decides where a segment lies.
func New(pageBytes int64, maxPages uint32, plain bool) *Memory {
	maxPages = min(maxPages, heap.MostPages(uint32(max(1, pageBytes>>sizeclass.UnitShift)))) //nolint:gosec // a page is shorter than the arena
	return &Memory{
		finder:  finder{table: newTable(), maxPages: maxPages, plain: plain},
		handles: handles{pageBytes: pageBytes},
	}
}

// Pass cleans the free runs of a client up to a fence, which has passed, and returns how many those were.
func (m *Memory) Pass(id Client, f Fence) int { return m.pass(id, f, &m.firsts) }

// Victims returns whole handles in clean runs outside a run, the longest first, up to that many bytes. The result is valid
// until the next call.
func (m *Memory) Victims(bytes int64, outside Run) (ids []int32, sumBytes int64) {
	if bytes <= 0 {
		return nil, 0
	}
	ids = m.victims(func(r Run) bool { return !r.Overlaps(outside) })
	for i, id := range ids {
		if sumBytes += m.Bytes(m.handleOf[id].run.Pages); sumBytes >= bytes {
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

// victims returns the wanted whole handles in clean runs: the longest first, since each costs the same whatever its length, and
// among equals the ones in the shortest runs.
func (m *Memory) victims(want func(Run) bool) []int32 {
	found := m.found[:0]
	m.clean.bins.Each(m.links, 1, func(i int32) bool {
		run := m.freeRun(uint32(i))
		for at := run.First; at < run.End(); {
			h := m.pages[at].handle
			r := m.handleOf[h].run
			if run.Covers(r) && want(r) {
				found = append(found, victim{h, r.Pages, run.Pages, r.First})
			}
			at = r.End()
		}
		return true
	})
	slices.SortFunc(found, func(a, b victim) int {
		return cmp.Or(cmp.Compare(b.pages, a.pages), cmp.Compare(a.runPages, b.runPages), cmp.Compare(a.first, b.first))
	})
	m.found = found
	ids := m.victimIDs[:0]
	for _, v := range found {
		ids = append(ids, v.handle)
	}
	m.victimIDs = ids
	return ids
}

// ShortestRun returns the handles of the shortest clean run that is made of whole handles: without them there is one run less.
func (m *Memory) ShortestRun() (ids []int32) {
	var shortest Run
	m.clean.bins.Each(m.links, 1, func(i int32) bool {
		run := m.freeRun(uint32(i))
		order := cmp.Or(cmp.Compare(run.Pages, shortest.Pages), cmp.Compare(run.First, shortest.First))
		if (shortest.Pages == 0 || order < 0) && m.isWhole(run) {
			shortest = run
		}
		return true
	})
	for at := shortest.First; at < shortest.End(); {
		h := m.pages[at].handle
		ids = append(ids, h)
		at = m.handleOf[h].run.End()
	}
	return ids
}

// isWhole reports whether no handle of a free run has pages outside it.
func (m *Memory) isWhole(r Run) bool {
	return r.Covers(m.handleOf[m.pages[r.First].handle].run) && r.Covers(m.handleOf[m.pages[r.End()-1].handle].run)
}

// missingRuns returns the holes of a window. The result is valid until the next call.
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
