package memory

import (
	"slices"
	"sort"
)

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

// holeIndex finds the shortest hole of at least a length, among all and among those that follow pages of one client. It is an
// ordered set of keys in chunks. No chunk is empty unless it is the only one.
type holeIndex struct{ chunks [][]holeKey }

// chunkKeys is the most keys of a chunk. Not more: an insertion moves half of them. Not fewer: a split moves half of the list
// of chunks.
const chunkKeys = 128

// find returns the place of the lowest key that is not less than k: at may be the length of the chunk.
func (x *holeIndex) find(k holeKey) (chunk, at int) {
	if len(x.chunks) == 0 {
		x.chunks = append(x.chunks, make([]holeKey, 0, chunkKeys+1))
	}
	chunk = sort.Search(len(x.chunks)-1, func(i int) bool { return k.less(x.chunks[i+1][0]) })
	keys := x.chunks[chunk]
	return chunk, sort.Search(len(keys), func(i int) bool { return !keys[i].less(k) })
}

func (x *holeIndex) insert(k holeKey) {
	chunk, at := x.find(k)
	keys := slices.Insert(x.chunks[chunk], at, k)
	if len(keys) > chunkKeys {
		upper := append(make([]holeKey, 0, chunkKeys+1), keys[chunkKeys/2:]...)
		keys = keys[:chunkKeys/2]
		x.chunks = slices.Insert(x.chunks, chunk+1, upper)
	}
	x.chunks[chunk] = keys
}

// remove takes out a key that is in the index.
func (x *holeIndex) remove(k holeKey) {
	chunk, at := x.find(k)
	keys := x.chunks[chunk]
	keys = append(keys[:at], keys[at+1:]...)
	if x.chunks[chunk] = keys; len(keys) == 0 && len(x.chunks) > 1 {
		x.chunks = append(x.chunks[:chunk], x.chunks[chunk+1:]...)
	}
}

// shortest finds the shortest hole of at least that many pages, and of equals the first one, after pages of a client, or with 0
// anywhere.
func (x *holeIndex) shortest(after Client, leastPages uint32) (Run, bool) {
	chunk, at := x.find(holeKey{after: after, pages: leastPages})
	if at == len(x.chunks[chunk]) {
		chunk, at = chunk+1, 0
	}
	if chunk == len(x.chunks) || at == len(x.chunks[chunk]) {
		return Run{}, false
	}
	k := x.chunks[chunk][at]
	return Run{First: k.first, Pages: k.pages}, k.after == after
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
	t.holeRuns.insert(holeKey{0, r.Pages, r.First})
	if id := t.holderBefore(r.First); id != 0 {
		t.holeRuns.insert(holeKey{id, r.Pages, r.First})
	}
}

// removeHole takes a run out that addHole has entered.
func (t *table) removeHole(r Run) {
	if r.End() == t.top() {
		return
	}
	t.holeRuns.remove(holeKey{0, r.Pages, r.First})
	if id := t.holderBefore(r.First); id != 0 {
		t.holeRuns.remove(holeKey{id, r.Pages, r.First})
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
		t.holeRuns.remove(holeKey{was, r.Pages, r.First})
	}
	if is != 0 {
		t.holeRuns.insert(holeKey{is, r.Pages, r.First})
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
