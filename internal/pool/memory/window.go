package memory

// Window is a run of pages that can be made free for a client by mapping those that are missing in it.
type Window struct {
	Run     Run
	Missing uint32 // pages

	gap   uint32 // length of the region that it lies in
	apart bool   // begins with missing pages beside another client's
}

// User is the client that a window is for: free pages under the client's own tags are part of it, and those of other clients for which
// Waits reports true. The zero User uses clean pages alone.
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
}

// MaxPages is the length of the arena.
func (f *finder) MaxPages() uint32 { return f.maxPages }

// Plain reports whether the memory is made of plain segments.
func (f *finder) Plain() bool { return f.plain }

// Room is the window that a request for that many pages gets: with virtual memory the idle pages with the fewest holes; with plain
// segments free pages side by side, else the place of a new segment.
func (f *finder) Room(u User, count uint32) (Window, bool) {
	if !f.plain {
		return f.window(u, count)
	}
	if w, ok := f.joined(u, count); ok {
		return w, true
	}
	return f.place(count)
}

// WaitingRoom is Room for a client that waits for the fences of others. Plain segments do not grow for it.
func (f *finder) WaitingRoom(u User, count uint32) (Window, bool) {
	if f.plain {
		w, ok := f.joined(u, count)
		return w, ok && w.Missing == 0
	}
	return f.window(u, count)
}

// Beyond is a window in which every page is missing.
func (f *finder) Beyond(count uint32) (Window, bool) {
	if f.plain {
		return f.place(count)
	}
	run, ok := f.holes(count)
	return Window{Run: run, Missing: count}, ok
}

// AtTheEnd is a window behind all pages that were ever used.
func (f *finder) AtTheEnd(count uint32) (Window, bool) {
	run := Run{First: f.top(), Pages: count}
	return Window{Run: run, Missing: count}, uint64(run.First)+uint64(count) <= uint64(f.maxPages)
}

// window finds the run of idle pages with the fewest missing ones among those that start where a free run starts or end where one
// ends; of equals one beside the client's own memory, then the one in the smallest region. The untouched end of the arena is one
// region.
func (f *finder) window(u User, count uint32) (best Window, ok bool) {
	f.eachIdle(count, func(idle Run) bool {
		f.regions(u, idle, func(r Run) { f.windowIn(u, r, count, &best, &ok) })
		return true
	})
	return best, ok
}

// eachIdle visits the longest runs of free pages and holes that have so many pages at least, in order of address, until the visitor
// has seen enough. The last one reaches to the end of the arena.
func (f *finder) eachIdle(leastPages uint32, visit func(Run) bool) {
	idle, top := f.idle, f.top()
	for at := idle.next(0, top, true); ; {
		end := idle.next(at, top, false)
		if end == top {
			end = f.maxPages
		}
		if end-at >= leastPages && !visit(Run{First: at, Pages: end - at}) || end == f.maxPages {
			return
		}
		at = idle.next(end, top, true)
	}
}

// regions cuts a run of idle pages at the free runs that the user may not use.
func (f *finder) regions(u User, idle Run, visit func(Run)) {
	at, end := idle.First, idle.End()
	f.eachFree(idle, func(r Run) {
		if u.mayUse(f.pages[r.First].client) {
			return
		}
		if r.First > at {
			visit(Run{First: at, Pages: r.First - at})
		}
		at = r.End()
	})
	if end > at {
		visit(Run{First: at, Pages: end - at})
	}
}

func (f *finder) windowIn(u User, region Run, count uint32, best *Window, ok *bool) {
	if region.Pages < count {
		return
	}
	last := region.End() - count
	try := func(first uint32) {
		run := Run{First: first, Pages: count}
		w := Window{Run: run, Missing: count - f.free.count(run), gap: region.Pages}
		w.apart = w.Missing == count && first == region.First && !f.beside(u, first)
		if !*ok || w.Missing < best.Missing || w.Missing == best.Missing && (best.apart && !w.apart || w.apart == best.apart && w.gap < best.gap) {
			*best, *ok = w, true
		}
	}
	try(region.First)
	if region.End() == f.maxPages && last-region.First >= f.zonePages() {
		try(region.First + f.zonePages())
	}
	f.eachFree(region, func(r Run) {
		try(min(r.First, last))
		if end := r.End(); end >= region.First+count {
			try(min(end-count, last))
		}
	})
}

// zoneShare is the part of the arena that lies between the memory of clients, as far as there is room: address space costs
// nothing, and what is left of a client's last page joins what it is mapped next only if that lies beside it.
const zoneShare = 1024

// zonePages is zero in arenas that are not long enough.
func (f *finder) zonePages() uint32 { return f.maxPages / zoneShare }

// beside reports whether pages that the user gets from that one on would lie beside its own memory, or there is no room to be
// apart from others.
func (f *finder) beside(u User, first uint32) bool {
	if first == 0 || f.zonePages() == 0 || u.Client == 0 {
		return true
	}
	p := &f.pages[min(first, f.top())-1]
	return p.state == Hole || p.state == Lent && p.client == u.Client
}

// holes finds the first run of that many pages that are all holes.
func (f *finder) holes(count uint32) (run Run, ok bool) {
	f.eachIdle(count, func(idle Run) bool {
		at := idle.First
		f.eachFree(idle, func(r Run) {
			if !ok && r.First-at >= count {
				run, ok = Run{First: at, Pages: count}, true
			}
			at = r.End()
		})
		if !ok && idle.End()-at >= count {
			run, ok = Run{First: at, Pages: count}, true
		}
		return !ok
	})
	return run, ok
}

// joined is a window of free pages that the user may use, though no single run is long enough: runs with different tags that lie
// side by side in one segment.
func (f *finder) joined(u User, count uint32) (best Window, ok bool) {
	top := f.top()
	for at := f.free.next(0, top, true); at < top; {
		end := f.free.next(at, top, false)
		if end-at >= count {
			f.regions(u, Run{First: at, Pages: end - at}, func(r Run) { f.windowIn(u, r, count, &best, &ok) })
		}
		at = f.free.next(end, top, true)
	}
	return best, ok
}

// place finds page numbers for a new segment, with a hole on either side: segments never touch, so that no run reaches over two of
// them, wherever the driver puts them.
func (f *finder) place(count uint32) (Window, bool) {
	if count > f.maxPages {
		return Window{}, false
	}
	run, ok := f.holes(count + 2)
	return Window{Run: Run{First: run.First + 1, Pages: count}, Missing: count}, ok
}
