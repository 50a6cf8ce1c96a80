package core

import "slices"

// queue holds the active requests. No single message causes a pass over all of them: with thousands refused at once each would
// cost as many searches as there are others.
type queue struct {
	refills []*request // in order of arrival; those that wait join when they are tried
	others  []*request // warm-ups, trims, gathers: likewise

	awaiting []*request // those with answers to come
	// searched is how many refills, from the first on, were searched for in vain since a free run came last: while the memory's
	// Inserts equal searchedAt.
	searched   int
	searchedAt uint64
	first      *request // the refill that was searched for as the first, which may get several runs
}

func (q *queue) empty() bool { return len(q.refills) == 0 && len(q.others) == 0 }

func (q *queue) push(r *request) {
	if r.kind == refill {
		q.refills = append(q.refills, r)
	} else {
		q.others = append(q.others, r)
	}
}

// pushFront puts refills before all others.
func (q *queue) pushFront(all []*request) {
	q.refills = slices.Concat(all, q.refills)
	q.searchAgain()
}

// head returns the request that may climb: the first refill, else the first of the others, which nobody waits for on the way of
// an allocation.
func (q *queue) head() *request {
	if len(q.refills) > 0 {
		return q.refills[0]
	}
	return q.others[0]
}

// remove takes a request out, if it is there. It is nearly always the first or the last.
func (q *queue) remove(r *request) {
	if r.kind != refill {
		q.others = slices.DeleteFunc(q.others, func(o *request) bool { return o == r })
		return
	}
	n := len(q.refills)
	switch {
	case n == 0:
	case q.refills[n-1] == r:
		q.refills[n-1] = nil
		q.refills = q.refills[:n-1]
		q.searched = min(q.searched, n-1)
	case q.refills[0] == r:
		q.refills[0] = nil
		q.refills = q.refills[1:]
		if q.searched > 0 {
			q.searched--
		}
	default:
		if at := slices.Index(q.refills, r); at >= 0 {
			q.refills = slices.Delete(q.refills, at, at+1)
			q.searchAgain()
		}
	}
}

// removeOf takes out all refills of one client.
func (q *queue) removeOf(id Client) (all []*request) {
	q.searchAgain()
	q.refills = slices.DeleteFunc(q.refills, func(r *request) bool {
		if r.client != id {
			return false
		}
		all = append(all, r)
		return true
	})
	return all
}

// serve grants free memory to refills, in their order. A refill of several runs gets them one by one and only as the first: two
// that got parts could keep each other from the rest. A refill is not searched for again before a free run comes, unless it has
// become the first. inserts returns the memory's Inserts.
func (q *queue) serve(inserts func() uint64, grant func(*request) bool) {
	if q.searchedAt != inserts() {
		q.searched, q.searchedAt = 0, inserts()
	}
	for q.searched > 0 && q.promoted() && grant(q.refills[0]) {
		q.remove(q.refills[0])
	}
	kept := q.searched
	first := kept == 0 || kept == 1 && q.refills[0].offering
	for at := kept; at < len(q.refills); at++ {
		r := q.refills[at]
		if !r.offering {
			if (first || len(r.more) == 0) && grant(r) {
				continue
			}
			if first {
				first, q.first = false, r
			}
		}
		q.refills[kept] = r
		kept++
	}
	clear(q.refills[kept:])
	q.refills, q.searched = q.refills[:kept], kept
}

// promoted reports whether a refill that wants several runs has become the first.
func (q *queue) promoted() bool {
	r := q.refills[0]
	if r == q.first || r.offering {
		return false
	}
	q.first = r
	return len(r.more) > 0
}

// each visits all requests: refills first.
func (q *queue) each(visit func(*request)) {
	for _, r := range q.refills {
		visit(r)
	}
	for _, r := range q.others {
		visit(r)
	}
}

// warming reports whether a warm-up is active.
func (q *queue) warming() bool {
	return slices.ContainsFunc(q.others, func(r *request) bool { return r.kind == warm })
}

// searchAgain notes that the wish or the choice of a refill has changed.
func (q *queue) searchAgain() { q.searched = 0 }

// pass cleans the runs of incomplete refills up to a fence of a client that has passed.
func (q *queue) pass(p Passed) {
	for _, r := range q.refills {
		r.parts.Pass(p.Client, p.Fence)
	}
}

// awaits notes that answers to a request are to come.
func (q *queue) awaits(r *request) {
	if len(r.awaits) > 0 && !slices.Contains(q.awaiting, r) {
		q.awaiting = append(q.awaiting, r)
	}
}

// answered reports that an answer to an Ask came, or will never come.
func (q *queue) answered(id Client) {
	kept := q.awaiting[:0]
	for _, r := range q.awaiting {
		r.awaits = slices.DeleteFunc(r.awaits, func(a Client) bool { return a == id })
		if len(r.awaits) > 0 {
			kept = append(kept, r)
		}
	}
	clear(q.awaiting[len(kept):])
	q.awaiting = kept
}
