package vram

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/streams"
)

// WaitingRequest is a request that has no answer yet.
type WaitingRequest = streams.WaitingRequest

// WaitFor is the cause of a wait.
type WaitFor = streams.WaitFor

// The causes of waits: see streams.WaitFor.
const (
	WaitForMemory  = streams.WaitForMemory
	WaitForQuota   = streams.WaitForQuota
	WaitForPool    = streams.WaitForPool
	WaitForHandler = streams.WaitForHandler
	WaitForWork    = streams.WaitForWork
)

// Party is a stream, or a tenant, that holds memory or waits. Requests with a tenant hold and wait for
// the tenant, others for their stream.
type Party struct {
	Stream uint32 // 0: see Tenant
	Tenant string
}

// String names the party.
func (p Party) String() string {
	if p.Stream == 0 {
		return fmt.Sprintf("tenant %q", p.Tenant)
	}
	return fmt.Sprintf("stream %d", p.Stream)
}

// WaitEdge says that one party waits for another.
type WaitEdge struct {
	From, To Party
	// Told: the other is one that the program has named, by a Handover or Stream.Suspend. Else From
	// waits for memory or a quota, and To holds some.
	Told bool
	// Sure: nothing of From goes on meanwhile. Else From is not exclusive (Stream.Exclusive,
	// Quota.Exclusive): its other goroutines may free, and no deadlock is ever declared for it.
	Sure bool
}

// String has both parties.
func (e WaitEdge) String() string {
	text := fmt.Sprintf("%v waits for %v", e.From, e.To)
	if e.Told {
		text += ", as the program has told"
	}
	if !e.Sure {
		text += ", unless another of its goroutines frees"
	}
	return text
}

// Waiters are the requests that wait, the holders of memory, and the waits between them. Requests of several streams
// are of moments close to each other.
type Waiters struct {
	// Requests are in the order in which they would be served; those without a place in the queue come
	// last. A request waits behind those before it, though a small one may pass.
	Requests []WaitingRequest
	Holders  []Holder // of memory, the largest first
	Edges    []WaitEdge
	Unread   []uint32 // streams that have failed: their requests are not in the list
}

// Waiters lists the requests that wait, and the parties that they wait for: before a circle of those is a
// *DeadlockError, and where it never will be, since streams or tenants are not declared exclusive. It
// waits for the request that each stream and the pool are serving, as Stats does. Errors: the
// context's, ErrClosed, and that of a pool that has failed.
func (d *Device) Waiters(ctx context.Context) (Waiters, error) {
	var w Waiters
	told := map[uint32][][]uint32{}
	failed, err := d.eachStream(ctx, func(s *streams.Control) error {
		all, err := s.Waiting(ctx)
		w.Requests = append(w.Requests, all...)
		if waits := s.Suspensions(); len(waits) > 0 {
			told[s.ID()] = waits
		}
		return err
	})
	if err != nil {
		return Waiters{}, err
	}
	w.Unread = failed
	e := d.engine.Load()
	if e == nil {
		return w, nil
	}
	queue, err := e.pool.Queue(ctx)
	if err != nil {
		return Waiters{}, closedOr(err)
	}
	w.Holders = queue.Holders
	w.rank(queue.Waiters)
	w.connect(told)
	return w, nil
}

// rank gives the requests their places in the queue, and adds those that began to wait meanwhile.
func (w *Waiters) rank(queue []Waiter) {
	at := map[uint64]int{} // by age, in Requests
	for i, r := range w.Requests {
		if r.Age != 0 {
			at[r.Age] = i
		}
	}
	for i, q := range queue {
		k, found := at[q.Age]
		if !found {
			k = len(w.Requests)
			r := WaitingRequest{Stream: q.Stream, Bytes: q.Bytes, Count: 1, Tenant: q.Tenant, Priority: q.Priority, Blocked: q.Blocked, Age: q.Age}
			if q.ForQuota {
				r.For = WaitForQuota
			}
			w.Requests = append(w.Requests, r)
		}
		w.Requests[k].Position = i + 1
	}
	slices.SortFunc(w.Requests, func(a, b WaitingRequest) int {
		return cmp.Or(compareTrue(a.Position > 0, b.Position > 0), cmp.Compare(a.Position, b.Position), cmp.Compare(a.Age, b.Age), cmp.Compare(a.Stream, b.Stream))
	})
}

// compareTrue puts true first.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// party is the one on whose behalf a request waits.
func party(r *WaitingRequest) Party {
	if r.Tenant != "" {
		return Party{Tenant: r.Tenant}
	}
	return Party{Stream: r.Stream}
}

// connect draws the waits of parties for others.
func (w *Waiters) connect(told map[uint32][][]uint32) {
	for i := range w.Requests {
		r := &w.Requests[i]
		switch from := party(r); r.For {
		case WaitForMemory:
			w.connectHolders(from, r.Blocked)
		case WaitForQuota: // the tenant's own buffers
			w.connectOne(WaitEdge{From: Party{Stream: r.Stream}, To: from, Sure: r.Blocked})
		case WaitForPool, WaitForHandler, WaitForWork: // that ends by itself
		}
	}
	ids := make([]uint32, 0, len(told))
	for id := range told {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		from := Party{Stream: id}
		for _, by := range told[id] {
			if len(by) == 0 {
				w.connectHolders(from, true)
			}
			for _, to := range by {
				w.connectOne(WaitEdge{From: from, To: Party{Stream: to}, Told: true, Sure: true})
			}
		}
	}
}

func (w *Waiters) connectHolders(from Party, sure bool) {
	for _, h := range w.Holders {
		w.connectOne(WaitEdge{From: from, To: Party{h.Stream, h.Tenant}, Sure: sure})
	}
}

// connectOne adds an edge, once for each pair: the surest.
func (w *Waiters) connectOne(e WaitEdge) {
	if e.From == e.To {
		return
	}
	for i := range w.Edges {
		if have := &w.Edges[i]; have.From == e.From && have.To == e.To {
			have.Sure, have.Told = have.Sure || e.Sure, have.Told || e.Told
			return
		}
	}
	w.Edges = append(w.Edges, e)
}

// Going are the holders of memory that neither wait for more nor are suspended: while there is one,
// its frees may serve the others. Once there is none, and all who wait are sure, it is a deadlock.
func (w Waiters) Going() (all []Holder) {
	for _, h := range w.Holders {
		waits := slices.ContainsFunc(w.Edges, func(e WaitEdge) bool { return e.From == Party{h.Stream, h.Tenant} })
		if !waits && h.WaitingBytes == 0 && !h.Suspended {
			all = append(all, h)
		}
	}
	return all
}

// Circles are the parties that wait for each other, directly or by way of others, each circle in one
// list. A circle is no deadlock yet while one of it, or any other holder, goes on.
func (w Waiters) Circles() (all [][]Party) {
	reach := map[Party][]Party{}
	var parties []Party
	for _, e := range w.Edges {
		for _, p := range []Party{e.From, e.To} {
			if _, known := reach[p]; !known {
				reach[p] = nil
				parties = append(parties, p)
			}
		}
	}
	for _, p := range parties {
		reach[p] = w.reached(p)
	}
	seen := map[Party]bool{}
	for _, p := range parties {
		if seen[p] || !slices.Contains(reach[p], p) {
			continue
		}
		var circle []Party
		for _, q := range parties {
			if slices.Contains(reach[p], q) && slices.Contains(reach[q], p) {
				circle = append(circle, q)
				seen[q] = true
			}
		}
		all = append(all, circle)
	}
	return all
}

// reached are the parties that one waits for, directly or by way of others.
func (w Waiters) reached(from Party) (all []Party) {
	due := []Party{from}
	for len(due) > 0 {
		at := due[0]
		due = due[1:]
		for _, e := range w.Edges {
			if e.From == at && !slices.Contains(all, e.To) {
				all = append(all, e.To)
				due = append(due, e.To)
			}
		}
	}
	return all
}

// linesShown is how many requests and edges the text has: all are in the fields.
const linesShown = 20

// String has a line for each request, holder and edge, the circles, and who goes on.
func (w Waiters) String() string {
	var sum int64
	for i := range w.Requests {
		sum += w.Requests[i].Bytes
	}
	verb := "wait"
	if len(w.Requests) == 1 {
		verb = "waits"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s for %s in all\n", units.Count(len(w.Requests), "request"), verb, units.Bytes(sum))
	for _, id := range w.Unread {
		fmt.Fprintf(&b, "stream %d has failed: its requests are not listed\n", id)
	}
	lines := func(title string, count int, line func(i int) string) {
		if count > 0 {
			b.WriteString(title + ":\n")
		}
		for i := range min(count, linesShown) {
			b.WriteString("  " + line(i) + "\n")
		}
		if count > linesShown {
			fmt.Fprintf(&b, "  and %d more\n", count-linesShown)
		}
	}
	lines("requests, in the order in which they are served", len(w.Requests), func(i int) string {
		if w.Requests[i].Position == 0 {
			return " -  " + w.Requests[i].String()
		}
		return fmt.Sprintf("%2d. %v", w.Requests[i].Position, w.Requests[i])
	})
	lines("who holds memory", len(w.Holders), func(i int) string { return w.Holders[i].String() })
	lines("who waits for whom", len(w.Edges), func(i int) string { return w.Edges[i].String() })
	circles := w.Circles()
	lines("circles", len(circles), func(i int) string { return listed(circles[i]) + " wait for each other" })
	if len(w.Requests) > 0 && len(w.Holders) > 0 {
		b.WriteString(goingText(w.Going()))
	}
	return b.String()
}

// listed are parties in one line.
func listed(all []Party) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

func goingText(going []Holder) string {
	if len(going) == 0 {
		return "of those who hold memory none goes on by itself: only a goroutine that is not declared exclusive, or a context's end, helps\n"
	}
	var parties []Party
	for _, h := range going[:min(linesShown, len(going))] {
		parties = append(parties, Party{h.Stream, h.Tenant})
	}
	return "of those who hold memory these go on: " + listed(parties) + "\n"
}
