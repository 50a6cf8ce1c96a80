package core

import (
	"maps"
	"slices"
)

// fences are the watches over fences of memory that clients have returned, and the requests that only such a fence can serve. A
// watch waits outside the turn and the driver goroutine, one for each client with such memory, so that a kernel that never ends
// keeps no request from the memory of another client. A request that waits for a fence is held: out of the queue, so that later
// ones are served.
//
//	queue --wait--> Watch job --nothing passed--> held --fence passed, pages returned--> queue, at the rung "ask all"
//	                          --nothing to watch--> denied
type fences struct {
	watches  map[Client]watch // of those with a fence that is or was watched
	held     []*request       // in order of arrival
	progress uint64           // rises when waiting for a fence was, or may now be, of use
}

// watch is the newest watch over a fence of one client, by its number, and the newest of which the end was reported.
type watch struct{ begun, ended uint64 }

// begun notes the watches that a job has begun.
func (f *fences) begun(all []Watch) {
	for _, m := range all {
		w := f.watches[m.Client]
		w.begun = max(w.begun, m.Number)
		f.watches[m.Client] = w
	}
}

// ended notes the end of a watch.
func (f *fences) ended(m Watch) {
	w := f.watches[m.Client]
	w.ended = max(w.ended, m.Number) // ends overtake each other
	f.watches[m.Client] = w
}

// watched reports whether the end of a watch over a client's fence is still to be reported.
func (f *fences) watched(id Client) bool {
	w := f.watches[id]
	return w.begun > w.ended
}

// watching reports whether the end of any watch over a client that may be awaited is still to be reported. A watch that began
// before its client was excluded goes unheeded.
func (f *fences) watching(mayBeAwaited func(Client) bool) bool {
	for id, w := range f.watches {
		if w.begun > w.ended && mayBeAwaited(id) {
			return true
		}
	}
	return false
}

// forget drops the watches that have ended over clients that are gone. Call it while no job is in flight that begins watches: the end
// of a watch may come before the report of its begin.
func (f *fences) forget(gone func(Client) bool) {
	maps.DeleteFunc(f.watches, func(id Client, w watch) bool { return w.begun <= w.ended && gone(id) })
}

// take takes out the requests that are held, of one client or, with 0, of all.
func (f *fences) take(id Client) (all []*request) {
	f.held = slices.DeleteFunc(f.held, func(r *request) bool {
		if id != 0 && r.client != id {
			return false
		}
		all = append(all, r)
		return true
	})
	return all
}

// takeDue takes out the requests that are held, once a fence has passed or may now be waited for: they ask all clients again.
func (f *fences) takeDue() []*request {
	if len(f.held) == 0 || f.held[0].progress == f.progress {
		return nil
	}
	all := f.take(0)
	for _, r := range all {
		r.rung, r.askedAll = rungAskAll, false
		r.forgive()
	}
	return all
}
