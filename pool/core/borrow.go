package core

import "slices"

// Waits says when a client gets memory that another has returned and whose fence has not passed: its stream is made
// to wait for that fence, on the device.
type Waits uint8

// The policies.
const (
	// WaitsAvoidGrowth waits where the soft budget would be broken otherwise: first on the device, then, since what
	// the client itself returned cannot be unmapped before its fence has passed, on the host.
	WaitsAvoidGrowth Waits = iota
	// WaitsNever grows up to the limit before anything waits.
	WaitsNever
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
		if other != id && d.bins.Count() > 0 {
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

// patient starts the wait, on the host, for the fences of a request's own client before memory is grown beyond the
// soft budget. It reports whether there is anything to wait for.
func (c *Core) patient(r *request) bool {
	if c.settings.Waits == WaitsNever || r.waitedOwn {
		return false
	}
	r.waitedOwn = true
	if d := c.pages.tagged[r.client]; d == nil || d.bins.Count() == 0 {
		return false
	}
	c.start(&Job{Wait: []Client{r.client}, purpose: forQuery, request: r})
	return true
}

// exceeds reports whether recycling what is clean would leave a request's window beyond what is worth a wait.
func (c *Core) exceeds(r *request) bool {
	w, ok := c.room(r.client, r.pages)
	if !ok {
		return false
	}
	soft := max(c.softBudget(), min(c.settings.LimitBytes, c.livePeakBytes+c.livePeakBytes/1024*c.settings.Policy.WaitSlack))
	short := c.reservedBytes + c.bytes(w.missing) - soft
	_, bytes := c.victimsOf(short, w.run)
	return short > bytes
}
