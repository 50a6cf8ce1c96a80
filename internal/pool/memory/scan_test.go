package memory

// scan finds windows as finder does, by a visit of every idle run. It holds no books but the states of the pages.
type scan struct {
	*finder
	idle bitmap // free or hole
}

func newScan(f *finder) *scan {
	s := &scan{finder: f}
	for at := range f.top() {
		s.idle.set(Run{First: at, Pages: 1}, f.pages[at].state == Free || f.pages[at].state == Hole)
	}
	return s
}

func (s *scan) Room(u User, count uint32) (Window, bool) {
	if !s.plain {
		return s.window(u, count)
	}
	if w, ok := s.joined(u, count); ok {
		return w, true
	}
	return s.place(count)
}

func (s *scan) WaitingRoom(u User, count uint32) (Window, bool) {
	if s.plain {
		w, ok := s.joined(u, count)
		return w, ok && w.Missing == 0
	}
	return s.window(u, count)
}

func (s *scan) Beyond(count uint32) (Window, bool) {
	if s.plain {
		return s.place(count)
	}
	run, ok := s.holes(count)
	return Window{Run: run, Missing: count}, ok
}

func (s *scan) window(u User, count uint32) (best Window, ok bool) {
	s.eachIdle(count, func(idle Run) bool {
		s.regions(u, idle, func(r Run) { s.windowIn(u, r, count, &best, &ok) })
		return true
	})
	return best, ok
}

// eachIdle visits the longest runs of free pages and holes that have so many pages at least, in order of address, until the
// visitor returns false. The last one reaches to the end of the arena.
func (s *scan) eachIdle(leastPages uint32, visit func(Run) bool) {
	idle, top := s.idle, s.top()
	for at := idle.next(0, top, true); ; {
		end := idle.next(at, top, false)
		if end == top {
			end = s.maxPages
		}
		if end-at >= leastPages && !visit(Run{First: at, Pages: end - at}) || end == s.maxPages {
			return
		}
		at = idle.next(end, top, true)
	}
}

// regions cuts a run of idle pages at the free runs that the user may not use.
func (s *scan) regions(u User, idle Run, visit func(Run)) {
	at, end := idle.First, idle.End()
	s.eachFree(idle, func(r Run) {
		if u.mayUse(s.pages[r.First].client) {
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

func (s *scan) windowIn(u User, region Run, count uint32, best *Window, ok *bool) {
	if region.Pages < count {
		return
	}
	last := region.End() - count
	try := func(first uint32) {
		run := Run{First: first, Pages: count}
		w := Window{Run: run, Missing: count - s.free.count(run), gap: region.Pages}
		w.apart = w.Missing == count && first == region.First && !s.adjoins(u, first)
		if !*ok || w.Missing < best.Missing ||
			w.Missing == best.Missing && (best.apart && !w.apart || w.apart == best.apart && w.gap < best.gap) {
			*best, *ok = w, true
		}
	}
	try(region.First)
	if region.End() == s.maxPages && s.free.count(region) == 0 && last-region.First >= s.zonePages() {
		try(region.First + s.zonePages())
	}
	s.eachFree(region, func(r Run) {
		try(min(r.First, last))
		if end := r.End(); end >= region.First+count {
			try(min(end-count, last))
		}
	})
}

func (s *scan) holes(count uint32) (run Run, ok bool) {
	s.eachIdle(count, func(idle Run) bool {
		at := idle.First
		s.eachFree(idle, func(r Run) {
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

func (s *scan) joined(u User, count uint32) (best Window, ok bool) {
	top := s.top()
	for at := s.free.next(0, top, true); at < top; {
		end := s.free.next(at, top, false)
		if end-at >= count {
			s.regions(u, Run{First: at, Pages: end - at}, func(r Run) { s.windowIn(u, r, count, &best, &ok) })
		}
		at = s.free.next(end, top, true)
	}
	return best, ok
}

func (s *scan) place(count uint32) (Window, bool) {
	if count > s.maxPages {
		return Window{}, false
	}
	run, ok := s.holes(count + 2)
	return Window{Run: Run{First: run.First + 1, Pages: count}, Missing: count}, ok
}
