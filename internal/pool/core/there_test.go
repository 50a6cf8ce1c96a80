package core

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// thrifty is a world in which nothing fails but memory: clients return all unused pages as soon as they are asked, fences pass
// when they are waited for, and other processes take and release memory at random.
type thrifty struct {
	*world
	inUse  []bool // page by page, of callers
	serves Refill // being served
	served bool
	soon   bool // fences pass as soon as they are waited for
	hides  bool // clients have magazines: an answer for all has more than was published
}

// TestNothingIsRefusedThatIsThere compares every refusal with a dumb bound: any request can have the handles, or segments, of
// which no page is used, and the memory that limit and driver leave. With handles of one page that is every unused page.
func TestNothingIsRefusedThatIsThere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ch := newDrawn(t)
		ch.left = 150
		w := newThrifty(t, ch)
		for ch.more() {
			switch ch.pick(8) {
			case 0:
				used, _ := w.used() // others take and release memory, also as much as this process holds and does not use
				w.driver.capacity = used + uint32(ch.pick(16))
			case 1, 2, 3:
				w.free(ch)
			case 4:
				w.pass(ch)
			default:
				w.ask(ch)
			}
		}
		w.finale(ch)
	})
}

func newThrifty(t failer, ch chooser) *thrifty {
	s := Settings{
		Policy: Policy{
			HandlePages: []uint32{1, 1, 2, 5}[ch.pick(4)], Slack: []int64{0, 200, 8192, 8192}[ch.pick(4)], Step: int64(ch.pick(3) * 100),
			MergePages: uint32(ch.pick(3)), SteadySlack: int64(ch.pick(2) * 100), //nolint:gosec // a few
		},
		LimitBytes: []int64{20, 40}[ch.pick(2)] * pageBytes,
		Waits:      Waits(ch.pick(3)), //nolint:gosec // 0 to 2
	}
	w := &thrifty{world: newWorld(t, 1024, uint32(10+ch.pick(30)), s)}
	if ch.pick(3) == 0 {
		w.core = NewPlain(pageBytes, uint32(len(w.pages)), s)
	}
	w.mute = ch.pick(4) == 0
	w.inUse = make([]bool, len(w.pages))
	w.onGrant, w.onLook = w.take, w.publish
	w.hides = ch.pick(3) == 0
	for range 1 + ch.pick(4) {
		w.join()
	}
	return w
}

// take gives the caller the pages of its request; the rest of a run is cached.
func (w *thrifty) take(g Grant) {
	if g.Token != w.serves.Token || g.Token == 0 {
		return
	}
	w.served = true
	wants := append([]uint32{w.serves.Pages}, w.serves.More...)
	for _, run := range append(append([]Run{}, g.More...), g.Run) {
		for len(wants) > 0 && wants[0] <= run.Pages {
			for i := run.First; i < run.First+wants[0]; i++ {
				w.inUse[i] = true
			}
			run.First, run.Pages, wants = run.First+wants[0], run.Pages-wants[0], wants[1:]
		}
	}
	if len(wants) > 0 {
		w.failf("%+v lacks %v of %+v", g, wants, w.serves)
	}
}

// free ends the use of some pages side by side. Their client keeps them, or gives all back that it keeps.
func (w *thrifty) free(ch chooser) {
	at := ch.pick(64)
	for i := at; i < at+1+ch.pick(8); i++ {
		w.inUse[i] = false
		if c := w.clients[w.pages[i].owner]; c != nil {
			c.free.stale = true
		}
	}
	if ch.pick(4) == 0 {
		w.home(w.some(ch), false)
	}
}

// stir notes that callers have freed memory which no client has collected.
func (w *thrifty) stir() {
	for _, c := range w.clients {
		c.free.stale = true
	}
}

// publish publishes a client's figures at the end of its turn.
func (w *thrifty) publish(id Client) {
	c, length := w.clients[id], uint32(0)
	c.live, c.free = w.liveBytes(id)/pageBytes, published{set: true}
	for i := range w.pages {
		if length++; w.pages[i].owner != id || w.inUse[i] || w.hides {
			length = 0
			continue
		}
		c.free.pages++
		c.free.atMax = max(c.free.atMax, length)
	}
}

// home gives back all pages that a client caches, under a fence that has yet to pass.
func (w *thrifty) home(id Client, answer bool) {
	r := Return{Client: id, Answer: answer, LiveBytes: w.liveBytes(id)}
	for i := range w.pages {
		if w.pages[i].owner != id || w.inUse[i] {
			continue
		}
		if n := len(r.Runs); n > 0 && r.Runs[n-1].First+r.Runs[n-1].Pages == uint32(i) {
			r.Runs[n-1].Pages++
		} else {
			r.Runs = append(r.Runs, Run{First: uint32(i), Pages: 1})
		}
	}
	if len(r.Runs) > 0 {
		w.clients[id].issued++
		r.Fence = w.clients[id].issued
	}
	w.mail = append(w.mail, r)
	w.deliverAt(len(w.mail) - 1)
	w.publish(id)
}

// liveBytes returns the bytes that a client's callers use.
func (w *thrifty) liveBytes(id Client) (bytes int64) {
	for i := range w.pages {
		if w.pages[i].owner == id && w.inUse[i] {
			bytes += pageBytes
		}
	}
	return bytes
}

// ask makes a client ask for pages, and compares the answer with the memory there.
func (w *thrifty) ask(ch chooser) {
	id, runs := w.some(ch), []uint32{uint32(1 + ch.pick(12))}
	wanted := runs[0]
	for len(runs) < 4 && ch.pick(3) == 0 {
		runs = append(runs, uint32(1+ch.pick(4)))
		wanted += runs[len(runs)-1]
	}
	free, exact := w.there()
	w.request(id, runs...)
	if must := wanted <= free && (exact || len(runs) == 1 && !w.mute); must && !w.served {
		w.failf("%d pages are refused, and %d are there (%s; the driver has %d)", wanted, free, w.sums(), w.driver.capacity)
	}
}

// request makes a client ask for runs, and performs everything that follows until it has its answer.
func (w *thrifty) request(id Client, runs ...uint32) {
	w.token++
	r := Refill{Client: id, Token: w.token, Pages: runs[0], More: runs[1:]}
	wanted := uint32(0)
	for _, n := range runs {
		wanted += n
	}
	r.Bytes = int64(wanted) * pageBytes
	r.LiveBytes = w.liveBytes(r.Client) + r.Bytes
	w.publish(id)
	w.serves, w.served, w.refills[r.Token] = r, false, r
	r.More = append([]uint32{}, r.More...) // the core's from here on
	w.send(r)
	for range 200 {
		switch asked := w.unanswered(); {
		case w.soon && len(w.watches) > 0:
			w.endWatch(0, nil)
		case w.job != nil:
			w.perform(-1, nil)
		case len(asked) > 0:
			w.home(asked[0], true)
		case w.looks > 0:
			w.endLooks()
		case len(w.refills) == 0:
			return
		case len(w.watches) > 0:
			w.endWatch(0, nil)
		}
	}
	w.failf("refill %d gets no answer", w.token)
}

// there returns how many pages any request must be able to get, and whether that is every page.
func (w *thrifty) there() (pages uint32, exact bool) {
	most := min(w.driver.capacity, uint32(w.settings.LimitBytes/pageBytes)) //nolint:gosec // a few
	used, exact := w.used()
	return most - min(most, used), exact
}

// used returns how many pages others can never have: all pages of handles on which any page is used.
func (w *thrifty) used() (used uint32, exact bool) {
	for _, h := range w.driver.handles {
		for i := h.first; i < h.first+h.pages; i++ {
			if w.inUse[i] {
				used += h.pages
				break
			}
		}
	}
	return used, !w.core.memory.Plain() && w.settings.Policy.HandlePages == 1
}

// Where the driver has far less than the process holds, and does not report it, memory that is released for a request does not
// come back. Before the request is denied all free memory has gone back to the driver, and none is kept in place.
func TestAllThatIsFreeGoesBackBeforeADenial(t *testing.T) {
	for _, handlePages := range []uint32{1, 5} {
		w := &thrifty{world: newWorld(t, 1024, 200, Settings{
			Policy: Policy{HandlePages: handlePages, MergePages: 8, Slack: 8192}, LimitBytes: 200 * pageBytes, Waits: WaitsNever,
		})}
		w.inUse, w.onGrant, w.onLook = make([]bool, len(w.pages)), w.take, w.publish
		w.join()
		w.join()
		w.request(1, 200)
		for i := range w.inUse {
			w.inUse[i] = i%10 == 0 && i < 200
		}
		w.stir()
		w.home(1, false)
		w.driver.capacity = 20*handlePages + 20
		w.request(2, 20)
		if !w.served {
			t.Fatalf("handles of %d pages: %s", handlePages, w.history())
		}
	}
}

// A batch takes of a free run no more than it needs, so that the rest serves its next run.
func TestABatchLeavesItsNextRunWhatItNeeds(t *testing.T) {
	w := &thrifty{world: newWorld(t, 1024, 16, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 60 * pageBytes, Waits: WaitsNever})}
	w.inUse, w.onGrant, w.onLook = make([]bool, len(w.pages)), w.take, w.publish
	w.join()
	w.request(1, 15)
	clear(w.inUse[5:10])
	w.stir()
	w.request(1, 2, 4) // five pages are free, and the driver has one
	if !w.served {
		t.Fatal(w.history())
	}
}

// Memory whose fence has not passed cannot go back to the driver. Refusals of the driver until then do not count against a
// request: once the fence has passed, all free memory goes back before the request is denied.
func TestRefusalsBeforeAFenceHasPassedDenyNothing(t *testing.T) {
	w := &thrifty{world: newWorld(t, 64, 64, Settings{Policy: Policy{HandlePages: 1, MergePages: 2, Slack: 8192}, LimitBytes: 64 * pageBytes})}
	w.inUse, w.onGrant, w.onLook = make([]bool, len(w.pages)), w.take, w.publish
	for range 4 {
		w.join()
	}
	// The first two clients' memory is fragmented. The third's lies between, and goes back to the driver.
	for _, r := range []struct {
		id    Client
		pages uint32
	}{{2, 1}, {3, 14}, {1, 9}, {3, 2}, {1, 1}, {3, 1}, {1, 3}, {3, 2}, {1, 2}, {2, 3}, {3, 6}, {2, 3}, {3, 8}, {1, 2}, {3, 1}, {1, 3}} {
		w.request(r.id, r.pages)
	}
	clear(w.inUse)
	w.stir()
	w.home(3, false)
	w.clients[3].passed = w.clients[3].issued
	w.token++
	w.await("trim")
	w.send(Trim{Token: w.token, KeepBytes: 27 * pageBytes})
	for range 10 {
		if asked := w.unanswered(); len(asked) > 0 {
			w.mail = append(w.mail, Return{Client: asked[0], Answer: true})
			w.deliverAt(len(w.mail) - 1)
		} else if w.job != nil {
			w.perform(-1, nil)
		}
	}
	w.home(1, false)
	w.clients[1].passed = w.clients[1].issued
	w.home(2, false)
	require.EqualValues(t, 27*pageBytes, w.core.freeBytes())
	require.EqualValues(t, 27*pageBytes, w.core.ReservedBytes())

	// Other processes take released memory until the driver has 13 pages for this one. While the request waits for the fence of
	// the second client the pool releases memory beyond its cache bound, and the fence passes before that has ended.
	w.settings.LimitBytes, w.settings.CacheBytes = 32*pageBytes, pageBytes
	w.epoch++
	w.core.SetSettings(w.settings)
	w.driver.capacity, w.soon = 13, true
	w.request(4, 13)
	if !w.served {
		t.Fatal(w.history())
	}
}

// Memory that the driver gave to others since it refused a request can be released for that request once a fence passes.
func TestAHeldRequestMayHaveWhatTheDriverGaveToOthers(t *testing.T) {
	t.Parallel()
	w := &thrifty{world: newWorld(t, 64, 14, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 40 * pageBytes})}
	w.core, w.mute = NewPlain(pageBytes, 64, w.settings), true
	w.inUse, w.onGrant, w.onLook = make([]bool, len(w.pages)), w.take, w.publish
	w.join()
	w.join()
	w.request(1, 10)
	w.request(2, 2)
	clear(w.inUse)
	w.home(2, false)

	w.token++
	r := Refill{Client: 1, Token: w.token, Pages: 3, Bytes: 3 * pageBytes} // 2 pages are free under a fence, the driver has 2
	w.serves, w.served, w.refills[r.Token] = r, false, r
	w.send(r)
	settle := func() {
		for w.job != nil || len(w.unanswered()) > 0 {
			if w.job != nil {
				w.perform(-1, nil)
				continue
			}
			w.mail = append(w.mail, Return{Client: w.unanswered()[0], Answer: true})
			w.deliverAt(0)
		}
	}
	settle()
	require.Len(t, w.core.fences.held, 1)
	w.token++
	w.await("warm")
	w.send(Warm{Token: w.token, Runs: []uint32{2}})
	settle()
	require.EqualValues(t, 14*pageBytes, w.core.ReservedBytes())
	w.endWatch(0, nil)
	settle()
	require.True(t, w.served, w.history())
}
