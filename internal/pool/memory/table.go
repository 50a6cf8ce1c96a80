package memory

import (
	"slices"

	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/watermark"
)

// State is one of the four states of a page: see the package comment.
type State uint8

// The states.
const (
	Hole State = iota
	Free
	Lent
	Busy
)

// page is an entry of the page table.
type page struct {
	handle int32  // that covers the page, or heap.None
	run    uint32 // length of the free run or the run of holes, valid at its first and its last page
	client Client // of a lent page: that holds it; of a free one: the tag's, valid at the run's first page
	home   Client // of a free page: that returned it and may have it back; 0 for memory that was never lent
	fence  Fence  // the tag's, valid at the first page of a free run
	since  uint32 // of a free page: the Tick at which it became free, or kept
	state  State
}

// tag returns the tag of the free run that begins at the page.
func (p *page) tag() Tag { return Tag{p.client, p.fence} }

// index finds the free runs under one client's tag by length; client 0 has the clean runs.
type index struct {
	bins  heap.Bins
	pages uint64
}

func newIndex() *index {
	x := &index{}
	x.bins.Reset()
	return x
}

// table is the page table with the free runs.
type table struct {
	pages  []page      // up to the highest page ever used
	links  []heap.Link // of free runs, by first page
	clean  *index
	tagged map[Client]*index
	free   bitmap
	counts [4]uint64 // of pages, by state

	returned uint64 // free pages that a client may have back

	holeRuns holeIndex // without the tail

	freePeak watermark.Mark // pages that were free at the end of a step

	now uint32 // ticks

	inserts  uint64 // free runs that came, or changed
	searches uint64 // for a free run that fits
}

func newTable() *table {
	return &table{clean: newIndex(), tagged: map[Client]*index{}, holeRuns: newHoleIndex()}
}

// extend makes the table reach up to that page.
func (t *table) extend(end uint32) {
	if end <= t.top() {
		return
	}
	tail, more := t.tail(), Run{First: t.top(), Pages: end - t.top()}
	t.makeRoom(int(end))
	for t.top() < end {
		t.pages = append(t.pages, page{handle: heap.None})
		t.links = append(t.links, heap.Link{})
	}
	t.counts[Hole] += uint64(more.Pages)
	t.free.set(more, false)
	t.addHole(Run{First: tail, Pages: end - tail})
}

// makeRoom at least doubles the capacity of the tables. Append adds a quarter each time, which copies a long table often.
func (t *table) makeRoom(count int) {
	if count <= cap(t.pages) {
		return
	}
	more := max(count, 2*cap(t.pages)) - len(t.pages)
	t.pages = slices.Grow(t.pages, more)
	t.links = slices.Grow(t.links, more)
}

func (t *table) top() uint32 { return uint32(len(t.pages)) }

// of returns the entries of a run.
func (t *table) of(r Run) []page { return t.pages[r.First:r.End()] }

// freeRun returns the free run, or the run of holes, that begins at a page.
func (t *table) freeRun(first uint32) Run { return Run{First: first, Pages: t.pages[first].run} }

// index returns the index of the free runs under a client's tags.
func (t *table) index(id Client) *index {
	if id == 0 {
		return t.clean
	}
	x := t.tagged[id]
	if x == nil {
		x = newIndex()
		t.tagged[id] = x
	}
	return x
}

// setState changes the state of pages; client is the one that lent pages are lent to.
func (t *table) setState(r Run, to State, client Client) {
	if r.Pages == 0 {
		return
	}
	end := r.End()
	holes, was := t.cutHoles(r, to), t.holderBefore(end)
	entries := t.of(r)
	for i := range entries {
		p := &entries[i]
		t.counts[p.state]--
		p.state, p.client, p.fence, p.run, p.since = to, client, 0, 0, t.now
		if to != Free && p.home != 0 {
			p.home = 0
			t.returned--
		}
	}
	t.counts[to] += uint64(r.Pages)
	t.free.set(r, to == Free)
	switch {
	case to == Hole:
		t.addHole(holes)
	case holes == r:
		t.holeFollows(end, was)
	default:
		t.addHole(Run{First: holes.First, Pages: r.First - holes.First})
		t.addHole(Run{First: end, Pages: holes.End() - end})
	}
}

// addFree makes pages free under a tag and merges them with neighbours of the same client, under the later of the two fences.
func (t *table) addFree(r Run, tag Tag) {
	t.setState(r, Free, 0)
	if r.First > 0 && t.pages[r.First-1].state == Free {
		left := r.First - t.pages[r.First-1].run
		if have := t.pages[left]; have.client == tag.Client {
			t.removeRun(left)
			r.First, r.Pages = left, r.Pages+have.run
			tag.Fence = max(tag.Fence, have.fence)
		}
	}
	if end := r.End(); end < t.top() && t.pages[end].state == Free && t.pages[end].client == tag.Client {
		have := t.pages[end]
		t.removeRun(end)
		r.Pages += have.run
		tag.Fence = max(tag.Fence, have.fence)
	}
	t.insertRun(r, tag)
}

func (t *table) insertRun(r Run, tag Tag) {
	if r.Pages == 0 {
		return
	}
	first := &t.pages[r.First]
	first.client, first.fence, first.run = tag.Client, tag.Fence, r.Pages
	t.pages[r.End()-1].run = r.Pages
	t.inserts++
	x := t.index(tag.Client)
	x.bins.Insert(t.links, int32(r.First), r.Pages)
	x.pages += uint64(r.Pages)
}

func (t *table) removeRun(first uint32) {
	have := &t.pages[first]
	x := t.index(have.client)
	x.bins.Remove(t.links, int32(first))
	x.pages -= uint64(have.run)
}

// takeFree changes pages that lie in one free run to another state. Pages of the run on either side of them stay free under its
// tag.
func (t *table) takeFree(first uint32, r Run, to State, client Client) {
	run, tag := t.freeRun(first), t.pages[first].tag()
	t.removeRun(first)
	t.setState(r, to, client)
	t.insertRun(Run{First: first, Pages: r.First - first}, tag)
	t.insertRun(Run{First: r.End(), Pages: run.End() - r.End()}, tag)
}

// fit finds a free run of at least that many pages, about the shortest of those that the client may use without a wait: clean
// ones and its own. Of equally short runs its own is taken.
func (t *table) fit(id Client, count uint32) (first uint32, ok bool) {
	t.searches++
	best, _ := t.clean.bins.Fit(t.links, count)
	if x := t.tagged[id]; x != nil {
		own, _ := x.bins.Fit(t.links, count)
		if own != heap.None && (best == heap.None || t.pages[own].run <= t.pages[best].run) {
			best = own
		}
	}
	return uint32(best), best != heap.None
}

// pass cleans the runs of a client up to a fence, and returns how many those were. The scratch has room for their first pages.
func (t *table) pass(id Client, f Fence, scratch *[]uint32) (cleaned int) {
	x := t.tagged[id]
	if x == nil {
		return 0
	}
	firsts := (*scratch)[:0]
	x.bins.Each(t.links, 1, func(i int32) bool {
		if t.pages[i].fence <= f {
			firsts = append(firsts, uint32(i))
		}
		return true
	})
	*scratch = firsts
	for _, first := range firsts {
		r := t.freeRun(first)
		t.removeRun(first)
		t.addFree(r, Tag{})
	}
	return len(firsts)
}

// eachFree visits the free runs that begin in a run of free pages and holes, in order of address. The visitor may take the run
// that it sees.
func (t *table) eachFree(r Run, visit func(Run)) {
	end := min(r.End(), t.top())
	for at := t.free.next(r.First, end, true); at < end; {
		run := t.freeRun(at)
		visit(run)
		at = t.free.next(run.End(), end, true)
	}
}
