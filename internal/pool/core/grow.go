package core

import "github.com/go-vram/vram/internal/pool/memory"

// grower maps windows for requests: the rungs of the ladder that grow, borrow and recycle, in its order.
type grower struct {
	settings *Settings
	memory   *memory.Memory
	clients  *clients
	budget   *budget
	answers  *answers
	asks     *asks
	jobs     *jobs
}

// joinsEarly reports whether a request joins runs before any client is asked.
func (g *grower) joinsEarly(r *request) bool { return !r.waits() && g.settings.Waits == WaitsAlways }

// join grants free runs side by side, of which no single one was long enough. With WaitsAlways it borrows, without new handles.
func (g *grower) join(r *request) verdict {
	if g.answers.assemble(r) || g.settings.Waits == WaitsAlways && g.lend(r, 0) {
		return again
	}
	return onward
}

// grow maps a window within the soft budget: one that is longer than the request wants, or as long, or as long as its first
// run. A new window lies next to the client's own memory, so that it merges with the free tail of the client's last page, or
// apart from the memory of all others.
func (g *grower) grow(r *request) verdict {
	p := &g.settings.Policy
	wanted := uint32(r.wanted()) // no more than the arena has
	n := max(wanted, g.pagesOf(p.Step))
	if !r.raised {
		n = wanted + g.pagesOf(p.SteadyStep)
	}
	if g.memory.Plain() { // one allocation, and not more than that
		n = max(wanted, min(n, p.HandlePages))
	}
	if g.growBy(r, n) {
		return again
	}
	if n > wanted { // as many more than it wants as the soft budget allows
		w, _ := g.memory.Room(memory.User{Client: r.client}, wanted)
		left := (g.budget.within(r, g.budget.softBytes()) - g.budget.reservedWith(w.Missing)) / g.memory.PageBytes()
		if g.growBy(r, wanted+uint32(max(0, min(left, int64(n-wanted))))) { //nolint:gosec // at most n
			return again
		}
	}
	if wanted > r.pages && g.growBy(r, r.pages) {
		return again
	}
	return onward
}

// pagesOf returns a part of the live peak, given in 1/1024 of it, in pages.
func (g *grower) pagesOf(share int64) uint32 {
	return uint32(g.budget.part(share) / g.memory.PageBytes())
}

// growBy maps a window of that many pages if the soft budget allows it, and the driver as far as is known.
func (g *grower) growBy(r *request, pages uint32) bool {
	w, ok := g.memory.Room(memory.User{Client: r.client}, pages)
	if !ok || !g.budget.fits(r, w.Missing) {
		return false
	}
	g.jobs.fill(r, w.Run, nil)
	return true
}

// borrow is like join, for a request whose fences were polled: it also uses new handles, within the soft budget.
func (g *grower) borrow(r *request) verdict {
	if g.answers.assemble(r) || g.lend(r, g.budget.softBytes()) {
		return again
	}
	return onward
}

// lend starts the job that fills a window with pages that others have tagged, after an Await for the fence of each of those
// clients, and with new handles while at most maxBytes are reserved. It reports whether there is such a window.
func (g *grower) lend(r *request, maxBytes int64) bool {
	if g.settings.Waits == WaitsNever || r.noBorrow {
		return false
	}
	if !g.memory.AnyTagged(func(id Client) bool { return id != r.client && g.clients.mayBeAwaited(id) }) {
		return false
	}
	w, ok := g.memory.WaitingRoom(memory.User{Waits: g.clients.mayBeAwaited}, r.pages)
	if !ok || w.Missing > 0 && g.budget.reservedWith(w.Missing) > g.budget.within(r, maxBytes) {
		return false
	}
	g.jobs.fill(r, w.Run, nil)
	return true
}

// mayBuy reports whether a request may buy growth: the live peak did not rise for it, and the driver did not refuse it.
func (g *grower) mayBuy(r *request) bool { return !r.raised && !r.capped && !g.memory.Plain() }

// buy maps a window beyond the soft budget if moves have cost the price of its missing pages.
func (g *grower) buy(r *request) verdict {
	w, ok := g.memory.Room(memory.User{Client: r.client}, r.pages)
	if !ok || !g.budget.buys(r, w.Missing) {
		return onward
	}
	g.jobs.fill(r, w.Run, nil)
	return again
}

// recycle takes whole clean handles outside a window, the longest first, and moves them into the window or releases them for
// it; new handles fill the rest. Short handles are released, and long ones created in their place. The window is the one with
// the fewest missing pages, or one of holes only if just the handles that reach into it from outside are missing. Recycling may
// break the soft budget, never the limit: first the other clients return all that they do not use, once for a request.
func (g *grower) recycle(r *request) verdict {
	v, plain := onward, g.memory.Plain()
	if w, ok := g.memory.Room(memory.User{Client: r.client}, r.pages); ok && (plain || r.refusals < holesRefusals) {
		v = g.recycleInto(r, w)
	}
	if plain || v != onward {
		return v
	}
	if w, ok := g.memory.Beyond(r.pages); ok {
		return g.recycleInto(r, w)
	}
	return onward
}

// recycleInto starts the job that fills a window, if the limit allows it: again. It returns branch where the other clients are
// to be asked first.
func (g *grower) recycleInto(r *request, w memory.Window) verdict {
	limit := g.budget.within(r, g.settings.LimitBytes)
	target := min(limit, g.budget.softBytes())
	if g.memory.Plain() && !r.idle { // freeing a segment waits for all work of the device: not before there is no other way
		target = limit
	}
	short := g.budget.reservedWith(w.Missing) - target
	if r.refusals >= clearingRefusals {
		short = max(short, g.memory.ReservedBytes())
	}
	ids, bytes := g.memory.Victims(short, w.Run)
	reserved := g.budget.reservedWith(w.Missing) - bytes
	if reserved > target && g.asksAll(r, reserved-target, reserved) {
		return branch
	}
	if reserved > limit {
		return onward
	}
	if g.clients.holding > 1 {
		g.budget.exceed(reserved-target, reserved)
	}
	if longer, ok := g.overgrown(r, limit+bytes); ok && bytes < short {
		w = longer
		ids, bytes = g.memory.Victims(g.memory.ReservedBytes(), w.Run)
	}
	g.budget.recycled(len(ids), bytes)
	g.jobs.fill(r, w.Run, ids)
	return again
}

// asksAll reports whether a request that would break the soft budget by so many bytes asks the other clients for all that they
// have first. Where it would break the limit it also asks those that have published no free pages: they close magazines for it.
func (g *grower) asksAll(r *request, overBytes, reservedBytes int64) bool {
	switch {
	case r.askedAll || r.capped:
		return false
	case reservedBytes > g.settings.LimitBytes: // magazines and spans hold more than the free ranges that are published
		return g.clients.anyHolder(func(cl *client) bool { return cl.id != r.client && cl.mayReturn() })
	}
	return !g.memory.Plain() && len(g.asks.richest(r)) > 0 && !g.budget.affords(overBytes, reservedBytes)
}

// overgrown returns a window that is longer than a request wants, for growth beyond the soft budget.
func (g *grower) overgrown(r *request, maxBytes int64) (w memory.Window, ok bool) {
	n := g.pagesOf(g.settings.Policy.OverStep)
	if g.memory.Plain() || r.capped || !r.raised || n <= r.pages || len(r.more) > 0 {
		return memory.Window{}, false
	}
	w, ok = g.memory.Room(memory.User{Client: r.client}, n)
	return w, ok && g.budget.reservedWith(w.Missing) <= maxBytes
}
