package core

import "slices"

// Waits says when a client gets memory that another has returned and whose fence has not passed: its stream is made
// to wait for that fence, on the device.
type Waits uint8

// The policies.
const (
	// WaitsNever grows up to the limit instead: nobody can know how long a fence takes to pass.
	WaitsNever Waits = iota
	// WaitsAvoidGrowth waits where the soft budget would be broken otherwise.
	WaitsAvoidGrowth
	// WaitsAlways waits wherever that spares growth, within the soft budget, too.
	WaitsAlways
)

// borrow starts the job that lets a request have pages which others have tagged: an Await for each of those, and
// growth by what is missing beside them, at most up to so many reserved bytes. It reports whether there is such a job.
func (c *Core) borrow(r *request, mostBytes int64) bool {
	if c.settings.Waits == WaitsNever || r.unborrowed || !c.othersTagged(r.client) {
		return false
	}
	w, ok := c.foreignRoom(r.pages)
	if !ok || w.missing > 0 && c.reservedBytes+c.bytes(w.missing) > r.within(mostBytes) {
		return false
	}
	c.startWindow(r, w.run, nil)
	return true
}

// othersTagged reports whether there are pages that only a wait would make this client's.
func (c *Core) othersTagged(id Client) bool {
	for other, d := range c.pages.tagged {
		if other != id && d.bins.Count() > 0 && !c.isExcluded(other) {
			return true
		}
	}
	return false
}

// foreignRoom is room for a request that may wait for everybody's fences. Plain segments do not grow for it.
func (c *Core) foreignRoom(n uint32) (window, bool) {
	if c.plain {
		w, ok := c.joined(everybody, n)
		return w, ok && w.missing == 0
	}
	return c.window(everybody, n)
}

// everybody stands for a client that may use pages whatever their tag.
const everybody = ^Client(0) - 1

// awaitOps puts an Await for every client but the request's own before what a job does to the pages that they tagged.
func (c *Core) awaitOps(j *Job) {
	if j.request == nil {
		return
	}
	latest := map[Client]Fence{}
	for _, t := range j.parts {
		if t.client != 0 && t.client != j.request.client {
			latest[t.client] = max(latest[t.client], t.fence)
		}
	}
	ids := make([]Client, 0, len(latest))
	for id := range latest {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		j.Ops = append(j.Ops, Op{Verb: Await, Of: id, Fence: latest[id]})
	}
	if len(ids) > 0 {
		j.Waiter = j.request.client
	}
}
