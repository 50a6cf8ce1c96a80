package memory

import "github.com/tidwall/btree"

// holeKey is an entry of a holeIndex. Entries are ordered by client, then by length, then by address.
type holeKey struct {
	after Client // that holds the page before the hole; 0 in the entry that every hole has
	pages uint32
	first uint32
}

func (k holeKey) less(o holeKey) bool {
	if k.after != o.after {
		return k.after < o.after
	}
	if k.pages != o.pages {
		return k.pages < o.pages
	}
	return k.first < o.first
}

// holeIndex finds the shortest hole of at least a length, among all and among those that follow pages of one client.
type holeIndex struct{ holeSet }

// holeSet is the tree of a holeIndex. As an interface it keeps the tree's generic type out of Memory and of all types that refer to it:
// each package that imports one of them would compile the tree again.
type holeSet interface {
	Set(k holeKey) (was holeKey, replaced bool)
	Delete(k holeKey) (was holeKey, deleted bool)
	Get(k holeKey) (is holeKey, found bool)
	Ascend(from holeKey, each func(k holeKey) (more bool))
	Len() int
	Clear()
}

func newHoleIndex() holeIndex {
	return holeIndex{btree.NewBTreeGOptions(holeKey.less, btree.Options{NoLocks: true})}
}

// shortest finds the shortest hole of at least that many pages, and of equals the first one, after pages of a client, or with 0
// anywhere.
func (x holeIndex) shortest(after Client, leastPages uint32) (r Run, found bool) {
	x.Ascend(holeKey{after: after, pages: leastPages}, func(k holeKey) bool {
		r, found = Run{First: k.first, Pages: k.pages}, k.after == after
		return false
	})
	return r, found
}

// tail returns the first page of the hole that reaches to the end of the arena, which may have no pages below the top. The
// index does not have that hole.
func (t *table) tail() uint32 {
	top := t.top()
	if top > 0 && t.pages[top-1].state == Hole {
		top -= t.pages[top-1].run
	}
	return top
}

// holderBefore returns the client that the page before another one is lent to, 0 if it is not lent.
func (t *table) holderBefore(at uint32) Client {
	if at == 0 || t.pages[at-1].state != Lent {
		return 0
	}
	return t.pages[at-1].client
}

// addHole enters a maximal run of holes.
func (t *table) addHole(r Run) {
	if r.Pages == 0 {
		return
	}
	t.pages[r.First].run, t.pages[r.End()-1].run = r.Pages, r.Pages
	if r.End() == t.top() {
		return
	}
	t.holeRuns.Set(holeKey{0, r.Pages, r.First})
	if id := t.holderBefore(r.First); id != 0 {
		t.holeRuns.Set(holeKey{id, r.Pages, r.First})
	}
}

// removeHole takes a run out that addHole has entered.
func (t *table) removeHole(r Run) {
	if r.End() == t.top() {
		return
	}
	t.holeRuns.Delete(holeKey{0, r.Pages, r.First})
	if id := t.holderBefore(r.First); id != 0 {
		t.holeRuns.Delete(holeKey{id, r.Pages, r.First})
	}
}

// holeFollows enters that the page before another one, which may begin a hole, was held by a client and is not any more.
func (t *table) holeFollows(at uint32, was Client) {
	is := t.holderBefore(at)
	if is == was || at == t.top() || t.pages[at].state != Hole {
		return
	}
	r := t.freeRun(at)
	if r.End() == t.top() {
		return
	}
	if was != 0 {
		t.holeRuns.Delete(holeKey{was, r.Pages, r.First})
	}
	if is != 0 {
		t.holeRuns.Set(holeKey{is, r.Pages, r.First})
	}
}

// cutHoles removes the holes that change as pages change their state, and returns the run of those and the pages. Either all of
// the pages are holes, or none is.
func (t *table) cutHoles(r Run, to State) Run {
	if t.pages[r.First].state == Hole {
		hole := t.holeAround(r)
		t.removeHole(hole)
		return hole
	}
	first, end := r.First, r.End()
	if to == Hole && first > 0 && t.pages[first-1].state == Hole {
		first -= t.pages[first-1].run
		t.removeHole(Run{First: first, Pages: r.First - first})
	}
	if to == Hole && end < t.top() && t.pages[end].state == Hole {
		t.removeHole(t.freeRun(end))
		end += t.pages[end].run
	}
	return Run{First: first, Pages: end - first}
}

// holeAround returns the maximal run of holes that pages are part of. Its length is known at its first and at its last page.
// Windows touch one of these, or lie in the tail; other pages have it counted.
func (t *table) holeAround(r Run) Run {
	first, end := r.First, r.End()
	if tail := t.tail(); first >= tail {
		return Run{First: tail, Pages: t.top() - tail}
	}
	if end == t.top() || t.pages[end].state != Hole {
		n := t.pages[end-1].run
		return Run{First: end - n, Pages: n}
	}
	for first > 0 && t.pages[first-1].state == Hole {
		first--
	}
	return t.freeRun(first)
}
