package core

import "github.com/go-vram/vram/internal/pool/memory"

// growOrBorrow takes the rung at which memory is mapped within the soft budget. It reports whether the request is done.
func (l *ladder) growOrBorrow(r *request) bool {
	r.rung = rungPoll
	if l.answers.assemble(r) {
		return r.done
	}
	if l.settings.Waits == WaitsAlways && l.borrow(r, 0) {
		r.rung = rungGrow
		return false
	}
	l.grow(r)
	return false
}

// grow maps a window for a request that is longer than what it wants, as far as the soft budget allows that, or as long, or
// as its first run.
func (l *ladder) grow(r *request) {
	p := &l.settings.Policy
	wanted := uint32(r.wanted()) // no more than the arena has
	n := max(wanted, l.pagesOf(p.Step))
	if !r.raised {
		n = wanted + l.pagesOf(p.SteadyStep)
	}
	if l.memory.Plain() { // one allocation, and not more than that
		n = max(wanted, min(n, p.HandlePages))
	}
	_ = l.growBy(r, n) || n > wanted && l.growBy(r, wanted+l.spare(r, wanted, n-wanted)) ||
		wanted > r.pages && l.growBy(r, r.pages)
}

// pagesOf is a part of the live peak, given in 1/1024 of it, in pages.
func (l *ladder) pagesOf(share int64) uint32 {
	return uint32(l.budget.part(share) / l.memory.PageBytes())
}

// spare is how many pages more than it wants a request may have within the soft budget, at most that many.
func (l *ladder) spare(r *request, wanted, maxPages uint32) uint32 {
	w, ok := l.room(r, wanted)
	left := (r.within(l.budget.softBytes()) - l.reservedWith(w)) / l.memory.PageBytes()
	if !ok || left <= 0 {
		return 0
	}
	return uint32(min(int64(maxPages), left)) //nolint:gosec // between 0 and maxPages
}

// growBy maps a window of that many pages if the soft budget allows it, and the driver for all that is known.
func (l *ladder) growBy(r *request, pages uint32) bool {
	w, ok := l.room(r, pages)
	if !ok || l.reservedWith(w) > r.within(l.budget.softBytes()) {
		return false
	}
	l.jobs.fill(r, w.Run, nil)
	return true
}

// borrow starts the job that lets a request have pages which others have tagged: an Await for each of those, and
// growth by what is missing beside them, at most up to so many reserved bytes. It reports whether there is such a job.
func (l *ladder) borrow(r *request, maxBytes int64) bool {
	if l.settings.Waits == WaitsNever || r.noBorrow {
		return false
	}
	if !l.memory.AnyTagged(func(id Client) bool { return id != r.client && l.clients.mayBeAwaited(id) }) {
		return false
	}
	w, ok := l.memory.WaitingRoom(memory.User{Waits: l.clients.mayBeAwaited}, r.pages)
	if !ok || w.Missing > 0 && l.reservedWith(w) > r.within(maxBytes) {
		return false
	}
	l.jobs.fill(r, w.Run, nil)
	return true
}

// recycle makes room for a request by moving handles: into the window with the fewest missing pages,
// or, where the handles that reach into that window from outside are what is missing, into holes only,
// where no handle is in the way. It starts no job if even that cannot serve it.
func (l *ladder) recycle(r *request) {
	plain := l.memory.Plain()
	if w, ok := l.room(r, r.pages); ok && (plain || r.refusals < holesRefusals) && l.recycleInto(r, w) {
		return
	}
	if plain {
		return
	}
	if w, ok := l.memory.Beyond(r.pages); ok {
		l.recycleInto(r, w)
	}
}

// recycleInto starts the job that fills a window, if the limit allows it.
func (l *ladder) recycleInto(r *request, w memory.Window) bool {
	limit := r.within(l.settings.LimitBytes)
	target := min(limit, l.budget.softBytes())
	if l.memory.Plain() && !r.idle { // freeing a segment waits for all work of the device: not before there is no other way
		target = limit
	}
	short := l.reservedWith(w) - target
	if r.refusals >= clearingRefusals {
		short = max(short, l.memory.ReservedBytes())
	}
	ids, bytes := l.memory.Victims(short, w.Run)
	reserved := l.reservedWith(w) - bytes
	if reserved > target && l.asksAll(r, reserved-target, reserved) {
		r.rung = rungAskAll
		return true
	}
	if reserved > limit {
		return false
	}
	if l.clients.holding > 1 {
		l.budget.exceed(reserved-target, reserved)
	}
	if longer, ok := l.overgrown(r, limit+bytes); ok && bytes < short {
		w = longer
		ids, bytes = l.memory.Victims(l.memory.ReservedBytes(), w.Run)
	}
	l.budget.recycled(len(ids), bytes)
	l.jobs.fill(r, w.Run, ids)
	return true
}

// asksAll reports whether a request that would break the budget by so many bytes asks the other
// clients for all that they have first. Where it would break the limit it asks also those that have
// published no free pages: they close magazines for it.
func (l *ladder) asksAll(r *request, overBytes, reservedBytes int64) bool {
	switch {
	case r.askedAll || r.capped:
		return false
	case reservedBytes > l.settings.LimitBytes: // whatever they publish: magazines and spans hold more than free ranges
		return l.clients.anyHolder(func(cl *client) bool { return cl.id != r.client && cl.mayReturn() })
	}
	return !l.memory.Plain() && len(l.asks.richest(r)) > 0 && !l.budget.affords(overBytes, reservedBytes)
}

// overgrown is a window that is longer than a request wants, for growth beyond the soft budget.
func (l *ladder) overgrown(r *request, maxBytes int64) (w memory.Window, ok bool) {
	n := l.pagesOf(l.settings.Policy.OverStep)
	if l.memory.Plain() || r.capped || !r.raised || n <= r.pages || len(r.more) > 0 {
		return memory.Window{}, false
	}
	w, ok = l.room(r, n)
	return w, ok && l.reservedWith(w) <= maxBytes
}
