package core

import "slices"

// queue is the requests under way. A pass over all of them is never due to one message alone: with thousands refused at once
// that would cost each of them as many looks as there are others.
type queue struct {
	refills []*request // in order of arrival; those that wait join when they are tried
	others  []*request // warm-ups, trims, gathers: likewise

	awaiting []*request // those with answers to come
	// vain are how many refills, from the first on, were searched for in vain while pages.inserts was what it is in
	// vainInserts: no free run came since.
	vain        int
	vainInserts uint64
	first       *request // the refill that was searched for as the first, which may get several runs
}

func (q *queue) empty() bool { return len(q.refills) == 0 && len(q.others) == 0 }

func (q *queue) push(r *request) {
	if r.kind == refill {
		q.refills = append(q.refills, r)
	} else {
		q.others = append(q.others, r)
	}
}

// head is the request that may climb: the first refill, else the first of the others, which nobody waits for on the way of
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
		q.vain = min(q.vain, n-1)
	case q.refills[0] == r:
		q.refills[0] = nil
		q.refills = q.refills[1:]
		q.vain = max(0, q.vain-1)
	default:
		if at := slices.Index(q.refills, r); at >= 0 {
			q.refills = slices.Delete(q.refills, at, at+1)
			q.searchAgain()
		}
	}
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

// searchAgain says that what a refill wants, or may have, has changed.
func (q *queue) searchAgain() { q.vain = 0 }

// awaits notes that answers to a request are to come.
func (q *queue) awaits(r *request) {
	if len(r.awaits) > 0 && !slices.Contains(q.awaiting, r) {
		q.awaiting = append(q.awaiting, r)
	}
}

// answered says that an answer came, to a Look or to an Ask.
func (q *queue) answered(id Client, look bool) {
	kept := q.awaiting[:0]
	for _, r := range q.awaiting {
		if r.looking == look {
			r.awaits = slices.DeleteFunc(r.awaits, func(a Client) bool { return a == id })
			r.looking = look && len(r.awaits) > 0
		}
		if len(r.awaits) > 0 {
			kept = append(kept, r)
		}
	}
	clear(q.awaiting[len(kept):])
	q.awaiting = kept
}
