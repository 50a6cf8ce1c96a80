package memory

import "slices"

// Fit finds a free run of at least that many pages, about the shortest of those that the client may use without a wait: clean
// ones and its own. Of equally short runs its own is taken.
func (t *table) Fit(id Client, count uint32) (Part, bool) {
	first, ok := t.fit(id, count)
	if !ok {
		return Part{}, false
	}
	return Part{t.freeRun(first), t.pages[first].tag()}, true
}

// Lend gives a client pages that lie in one free run, which begins at first.
func (t *table) Lend(first uint32, r Run, to Client) { t.takeFree(first, r, Lent, to) }

// Free makes pages free that were lent or busy.
func (m *Memory) Free(r Run, tag Tag) {
	if m.sleepers != nil {
		m.sleepers.free(m, r, tag)
		return
	}
	m.addFree(r, tag)
}

// FreeParts makes pages free, each under the tag that it had when it was taken.
func (t *table) FreeParts(parts Parts, r Run) {
	for at, end := r.First, r.End(); at < end; {
		tag, until := parts.tagAt(at, end)
		t.addFree(Run{First: at, Pages: until - at}, tag)
		at = until
	}
}

// Transfer lends pages to another client, or to the first one where they are busy with a job.
func (t *table) Transfer(r Run, to Client) { t.setState(r, Lent, to) }

// LentTo reports whether all pages of a run are lent to a client.
func (t *table) LentTo(r Run, id Client) bool {
	if top := t.top(); r.Pages == 0 || r.Pages > top || r.First > top-r.Pages {
		return false
	}
	entries := t.of(r)
	for i := range entries {
		if p := &entries[i]; p.state != Lent || p.client != id {
			return false
		}
	}
	return true
}

// SetHome notes the client, not 0, that returned free pages and may have them back.
func (t *table) SetHome(r Run, id Client) {
	entries := t.of(r)
	for i := range entries {
		if entries[i].home == 0 {
			t.returned++
		}
		entries[i].home = id
	}
}

// LendHome lends free pages to the clients that returned them, where those take them. It calls lent for each run.
func (t *table) LendHome(takes func(Client) bool, lent func(Client, Run)) {
	if t.returned == 0 {
		return
	}
	t.eachFree(Run{Pages: t.top()}, func(r Run) {
		first := r.First // of the part that is still free
		for at := r.First; at < r.End(); {
			home, from := t.pages[at].home, at
			for at < r.End() && t.pages[at].home == home {
				at++
			}
			if takes(home) {
				run := Run{First: from, Pages: at - from}
				t.Lend(first, run, home)
				lent(home, run)
				first = at
			}
		}
	})
}

// TaggedClients returns the clients under whose tags pages are free, in ascending order.
func (t *table) TaggedClients() []Client {
	var ids []Client
	for id, x := range t.tagged {
		if x.bins.Count() > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// AnyTagged reports whether pages are free under the tags of any client that is asked for.
func (t *table) AnyTagged(want func(Client) bool) bool {
	for id, x := range t.tagged {
		if x.bins.Count() > 0 && want(id) {
			return true
		}
	}
	return false
}

// Forget drops the index of a client that is no more and has no free pages.
func (t *table) Forget(id Client) {
	if x := t.tagged[id]; x != nil && x.bins.Count() == 0 {
		delete(t.tagged, id)
	}
}

// FreeRuns returns the number of free runs.
func (t *table) FreeRuns() int {
	n := t.CleanRuns()
	for _, x := range t.tagged {
		n += x.bins.Count()
	}
	return n
}

// CleanRuns returns the number of free runs that no work uses.
func (t *table) CleanRuns() int { return t.clean.bins.Count() }

// MaxCleanPages returns the length of the longest free run that no work uses.
func (t *table) MaxCleanPages() uint32 { return t.clean.bins.Largest(t.links) }

// Inserts rises with each free run that comes, or changes.
func (t *table) Inserts() uint64 { return t.inserts }

// Searches returns the number of searches for a free run.
func (t *table) Searches() uint64 { return t.searches }

// Top returns the number of pages that were ever used. Pages from there on are holes.
func (t *table) Top() uint32 { return t.top() }

// Page describes a page.
type Page struct {
	State  State
	Holder Client // of a lent page
	// Of the first page of a free run: its length and its tag.
	RunPages uint32
	Tag      Tag
	Handle   int32 // -1: none
}

// Page returns the state of a page below Top.
func (t *table) Page(at uint32) Page {
	p := &t.pages[at]
	out := Page{State: p.state, Handle: p.handle}
	switch p.state {
	case Lent:
		out.Holder = p.client
	case Free:
		out.RunPages, out.Tag = p.run, p.tag()
	case Hole, Busy:
	}
	return out
}
