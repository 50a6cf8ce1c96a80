package memory

// Window is a run of pages that can be made free for a client by mapping those that are missing in it.
type Window struct {
	Run     Run
	Missing uint32 // pages

	gap   uint32 // length of the region that it lies in
	apart bool   // begins with missing pages next to another client's
}

// User is the client that a window is for. It may use free pages under its own tags, and under the tags of clients for which
// Waits reports true. The zero User uses clean pages only.
type User struct {
	Client Client
	Waits  func(Client) bool // whether the user may wait for the fences of that client; nil: for none
}

// mayUse reports whether free pages under a client's tag can be part of a window.
func (u User) mayUse(tag Client) bool {
	return tag == 0 || tag == u.Client || u.Waits != nil && u.Waits(tag)
}

// finder finds windows in an arena.
type finder struct {
	*table
	maxPages uint32
	plain    bool

	visits uint64 // of regions, in searches for windows
}

// MaxPages returns the length of the arena.
func (f *finder) MaxPages() uint32 { return f.maxPages }

// Plain reports whether the memory is made of plain segments.
func (f *finder) Plain() bool { return f.plain }

// Room returns the window that a request for that many pages gets: with virtual memory the idle pages with the fewest holes;
// with plain segments free pages side by side, else the place of a new segment.
func (f *finder) Room(u User, count uint32) (Window, bool) {
	if !f.plain {
		return f.window(u, count)
	}
	if w, ok := f.amongFree(u, count); ok {
		return w, true
	}
	return f.place(count)
}

// WaitingRoom is like Room, for a client that waits for the fences of others. Plain segments do not grow for it.
func (f *finder) WaitingRoom(u User, count uint32) (Window, bool) {
	if f.plain {
		w, ok := f.amongFree(u, count)
		return w, ok && w.Missing == 0
	}
	return f.window(u, count)
}

// Beyond returns a window in which every page is missing.
func (f *finder) Beyond(count uint32) (Window, bool) {
	if f.plain {
		return f.place(count)
	}
	run, ok := f.holes(count)
	return Window{Run: run, Missing: count}, ok
}

// window finds the run of idle pages with the fewest missing ones among those that start where a free run starts or end where
// one ends; of equals one next to the client's own memory, then the one in the smallest region, then the first. The untouched
// end of the arena is one region. Where no region that is long enough has free pages for the user, all pages of the window are
// missing, and the index of holes has the few regions that can be the best.
func (f *finder) window(u User, count uint32) (best Window, ok bool) {
	if best, ok = f.amongFree(u, count); ok {
		return best, ok
	}
	tail := f.tail()
	f.offer(u, Run{First: tail, Pages: f.maxPages - tail}, count, &best, &ok)
	if r, found := f.holeRuns.shortest(0, count); found {
		f.offer(u, r, count, &best, &ok)
	}
	if r, found := f.holeRuns.shortest(u.Client, count); found {
		f.offer(u, r, count, &best, &ok)
	}
	if tail > 0 && f.pages[0].state == Hole { // next to no other client's
		f.offer(u, f.freeRun(0), count, &best, &ok)
	}
	return best, ok
}

// offer takes the window in a region without free pages if that is better than the best one.
func (f *finder) offer(u User, region Run, count uint32, best *Window, ok *bool) {
	f.visits++
	if region.Pages < count {
		return
	}
	w := Window{Run: Run{First: region.First, Pages: count}, Missing: count, gap: region.Pages, apart: !f.adjoins(u, region.First)}
	if zone := f.zonePages(); w.apart && region.End() == f.maxPages && region.Pages-count >= zone {
		w.Run.First, w.apart = region.First+zone, false
	}
	if !*ok || w.better(best) {
		*best, *ok = w, true
	}
}

// better reports whether a window is preferred to one in another region.
func (w *Window) better(best *Window) bool {
	switch {
	case w.Missing != best.Missing:
		return w.Missing < best.Missing
	case w.apart != best.apart:
		return best.apart
	case w.gap != best.gap:
		return w.gap < best.gap
	}
	return w.Run.First < best.Run.First
}

// amongFree returns the best window in the regions with free pages that the user may use.
func (f *finder) amongFree(u User, count uint32) (best Window, ok bool) {
	look := func(i int32) bool {
		f.visits++
		if r, is := f.region(u, uint32(i)); is && r.Pages >= count {
			if w := f.windowIn(r, count); !ok || w.better(&best) {
				best, ok = w, true
			}
		}
		return true
	}
	f.clean.bins.Each(f.links, 1, look)
	if u.Waits == nil {
		if own := f.tagged[u.Client]; own != nil {
			own.bins.Each(f.links, 1, look)
		}
		return best, ok
	}
	for id, x := range f.tagged {
		if x.bins.Count() > 0 && u.mayUse(id) {
			x.bins.Each(f.links, 1, look)
		}
	}
	return best, ok
}

// region returns the longest run of pages around a free run that a window may lie in: free pages that the user may use and,
// with virtual memory, holes. It reports whether the run is the first free one of the region.
func (f *finder) region(u User, at uint32) (Run, bool) {
	first, end, top := at, at, f.top()
	if first > 0 && !f.plain && f.pages[first-1].state == Hole {
		first -= f.pages[first-1].run
	}
	if first > 0 && f.pages[first-1].state == Free && u.mayUse(f.pages[first-f.pages[first-1].run].client) {
		return Run{}, false
	}
	for end < top && f.reaches(u, &f.pages[end]) {
		end += f.pages[end].run
	}
	if end == top && !f.plain {
		end = f.maxPages
	}
	return Run{First: first, Pages: end - first}, true
}

// reaches reports whether a region reaches over the run that a page begins.
func (f *finder) reaches(u User, p *page) bool {
	return p.state == Free && u.mayUse(p.client) || p.state == Hole && !f.plain
}

// windowIn returns the best window in a region that has free pages and is long enough. A free page is in it.
func (f *finder) windowIn(region Run, count uint32) (best Window) {
	try := func(first uint32) {
		run := Run{First: first, Pages: count}
		if missing := count - f.free.count(run); best.Run.Pages == 0 || missing < best.Missing {
			best = Window{Run: run, Missing: missing, gap: region.Pages}
		}
	}
	try(region.First)
	f.eachFree(region, func(r Run) {
		try(min(r.First, region.End()-count))
		try(max(r.End(), region.First+count) - count)
	})
	return best
}

// zoneShare is the part of the arena that lies between the memory of clients, as far as there is room: address space costs
// nothing, and the rest of a client's last page joins the next mapping only if the two touch.
const zoneShare = 1024

// mostZonePages bounds a zone. The table has an entry for each page of a zone, and without the bound small pages, as
// package vramtest has, make a table of hundreds of MiB for a few streams.
const mostZonePages = 4096

// zonePages returns the length of a zone; zero in short arenas.
func (f *finder) zonePages() uint32 { return min(f.maxPages/zoneShare, mostZonePages) }

// adjoins reports whether pages that the user gets from that one on would touch its own memory, or there is no room to be
// apart from others.
func (f *finder) adjoins(u User, first uint32) bool {
	if first == 0 || f.zonePages() == 0 || u.Client == 0 {
		return true
	}
	p := &f.pages[min(first, f.top())-1]
	return p.state == Hole || p.state == Lent && p.client == u.Client
}

// holes finds the first run of that many pages that are all holes. It looks at one hole of each length that is long enough.
func (f *finder) holes(count uint32) (Run, bool) {
	first := f.tail()
	ok := f.maxPages-first >= count
	for r, found := f.holeRuns.shortest(0, count); found; r, found = f.holeRuns.shortest(0, r.Pages+1) {
		f.visits++
		if r.First < first {
			first, ok = r.First, true
		}
	}
	return Run{First: first, Pages: count}, ok
}

// place finds page numbers for a new segment, with a hole on either side: segments never touch, so that no run reaches over two
// of them, wherever the driver puts them.
func (f *finder) place(count uint32) (Window, bool) {
	if count > f.maxPages {
		return Window{}, false
	}
	run, ok := f.holes(count + 2)
	return Window{Run: Run{First: run.First + 1, Pages: count}, Missing: count}, ok
}
