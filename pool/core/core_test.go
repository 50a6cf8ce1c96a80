package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// settled is a world with clients 1 up to n and a pool that grows freely.
func settled(t *testing.T, n Client) *world {
	t.Helper()
	w := newWorld(t, 64, 64, Settings{Policy: Policy{HandlePages: 4, Slack: 4096}, LimitBytes: 64 * pageBytes})
	w.candid = true
	for id := Client(1); id <= n; id++ {
		w.clients[id] = &holder{}
		w.send(Join{Client: id})
	}
	return w
}

// want sends a refill of that many pages.
func (w *world) want(id Client, pages uint32) {
	w.token++
	r := Refill{Client: id, Token: w.token, Pages: pages, Bytes: int64(pages) * pageBytes}
	w.clients[id].live = int64(w.held(id)) + int64(pages)
	r.LiveBytes = w.clients[id].live * pageBytes
	w.refills[r.Token] = r
	w.send(r)
}

// give returns pages as an answer, if the client was asked.
func (w *world) give(id Client, fence Fence, runs ...Run) {
	w.clients[id].issued = max(w.clients[id].issued, fence)
	w.mail = append(w.mail, Return{Client: id, Runs: runs, Fence: fence, Answer: w.asked[id], LiveBytes: w.clients[id].live * pageBytes})
	w.deliverAt(len(w.mail) - 1)
}

// fill lends a client that many fresh pages.
func (w *world) fill(id Client, pages uint32) {
	w.want(id, pages)
	for len(w.unanswered()) > 0 {
		w.give(w.unanswered()[0], 0)
	}
	w.perform(-1, nil)
}

// What free memory can serve is granted in the same step, whatever is in flight or waits before it.
func TestFreeMemoryServesBehindEverything(t *testing.T) {
	t.Parallel()
	inFront := map[string]func(w *world){
		"a warm-up's job": func(w *world) { w.token++; w.await("warm"); w.send(Warm{Token: w.token, Runs: []uint32{9}}) },
		"a warm-up that holds all that is free": func(w *world) {
			w.token++
			w.await("warm")
			w.send(Warm{Token: w.token, Runs: []uint32{4, 9}})
		},
		"a trim that waits for answers": func(w *world) { w.token++; w.await("trim"); w.send(Trim{Token: w.token}) },
		"a trim's query": func(w *world) {
			w.token++
			w.await("trim")
			w.send(Trim{Token: w.token})
			w.give(1, 1, Run{7, 1})
			w.give(2, 0)
		},
		"a refill that waits for answers": func(w *world) { w.want(1, 30) },
		"a refill's job":                  func(w *world) { w.want(1, 30); w.give(1, 0) },
		"a poll":                          func(w *world) { w.give(1, 1, Run{7, 1}); w.send(Tick{}) },
	}
	for name, begin := range inFront {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, 2)
			w.fill(1, 8)
			w.fill(2, 1)
			w.give(1, 0, Run{0, 4})
			begin(w)
			require.True(t, w.job != nil || len(w.asked) > 0, "nothing is in front")
			w.want(2, 3)
			assert.NotContains(t, w.refills, w.token, "the refill waits")
		})
	}
}

// A refill is answered once, also when memory comes home while its own job is in flight; the window is
// free then.
func TestRefillThatWasServedFromElsewhereLeavesItsWindowFree(t *testing.T) {
	t.Parallel()
	w := settled(t, 2)
	w.fill(1, 8)
	w.want(2, 5)
	w.give(2, 0)
	require.NotNil(t, w.job, "it grows")
	w.give(1, 0, Run{0, 6})
	assert.Empty(t, w.refills, "free memory serves it")
	w.perform(-1, nil)
	assert.EqualValues(t, 5*pageBytes, w.core.FreeBytes())
	assert.EqualValues(t, 1, w.core.DriverGrants(), "the window served nobody")
}

// Such a window keeps the tag of the free pages that it took: they are still in use on the device.
func TestWindowThatServedNobodyKeepsItsTag(t *testing.T) {
	t.Parallel()
	w := settled(t, 2)
	w.fill(1, 8)
	w.fill(2, 4)
	w.give(2, 1, Run{10, 2})
	w.want(2, 5)
	w.give(2, 1)
	require.Equal(t, "####", w.drawing()[10:14], "the window takes the tagged pages")
	w.give(1, 0, Run{0, 6})
	require.Empty(t, w.refills)
	w.perform(-1, nil)
	assert.EqualValues(t, 2*pageBytes, w.core.PendingBytes(), "no more than had it")
	w.want(1, 5)
	assert.Contains(t, w.refills, w.token, "nobody else is granted them")
}

// A job that is not the one in flight, and a Return of what is not lent to that client, change nothing.
func TestNonsenseIsIgnored(t *testing.T) {
	t.Parallel()
	w := settled(t, 2)
	w.fill(1, 4)
	before := w.sums()
	for _, r := range []Run{{0, 5}, {3, 0}, {3, 1<<32 - 1}, {1<<32 - 1, 2}, {60, 1}} {
		w.send(Return{Client: 1, Runs: []Run{r}})
	}
	w.send(Return{Client: 2, Runs: []Run{{0, 4}}})
	w.send(Return{Client: 7, Runs: []Run{{0, 4}}, Answer: true})
	w.send(JobDone{Job: &Job{}, Err: errBroken})
	w.send(JobDone{Err: errBroken})
	w.send(Leave{Client: 7})
	assert.Equal(t, before, w.sums())
}

// The peaks start anew at the present values.
func TestPeaksAreReset(t *testing.T) {
	t.Parallel()
	w := settled(t, 1)
	w.fill(1, 8)
	w.give(1, 0, Run{0, 8})
	w.token++
	w.await("trim")
	w.send(Trim{Token: w.token, KeepBytes: 4 * pageBytes})
	w.give(1, 0)
	w.perform(-1, nil)
	c := w.core
	assert.EqualValues(t, 8*pageBytes, c.PeakReservedBytes())
	assert.EqualValues(t, 8*pageBytes, c.PeakLiveBytes())
	c.ResetPeaks(nil)
	assert.EqualValues(t, 4*pageBytes, c.PeakReservedBytes())
	assert.Zero(t, c.PeakLiveBytes())
	assert.Equal(t, "reserved 4194304 free 4194304 lent 0 busy 0 waiting 0", c.String())
	assert.Equal(t, w.settings, c.Settings())
}

// Pools in use for long forget who was there: no table grows with the number of streams that ever were.
func TestNothingIsKeptOfClientsThatAreGone(t *testing.T) {
	t.Parallel()
	w := settled(t, 0)
	for id := Client(1); id <= 50; id++ {
		w.clients[id] = &holder{}
		w.send(Join{Client: id})
		w.want(id, 3)
		if w.asked[id] { // only the first finds nothing free
			w.give(id, 0)
			w.perform(-1, nil)
		}
		w.give(id, 1, Run{0, 3})
		w.clients[id].left = true
		w.send(Leave{Client: id})
		w.send(Tick{})
		w.clients[id].passed = 1
		w.perform(-1, nil)
	}
	assert.Empty(t, w.core.clients)
	assert.Empty(t, w.core.ids)
	assert.Empty(t, w.core.pages.tagged)
	assert.EqualValues(t, 3*pageBytes, w.core.ReservedBytes())
}

// A driver that refuses everything is asked a bounded number of times, and the world goes quiet.
func TestRefusingDriverIsNotAskedWithoutEnd(t *testing.T) {
	t.Parallel()
	w := settled(t, 1)
	w.fill(1, 16)
	w.settings.CacheBytes, w.settings.CacheRuns = pageBytes, 1
	w.core.SetSettings(w.settings)
	w.give(1, 0, Run{0, 4}, Run{8, 4})
	for n := 0; w.job != nil; n++ {
		require.Less(t, n, 10)
		w.perform(0, errBroken)
	}
	w.send(Tick{})
	assert.NotNil(t, w.job, "a tick tries again")
}

// Check sees each kind of damage to the books.
func TestCheckSeesDamage(t *testing.T) {
	t.Parallel()
	damage := map[string]func(c *Core){
		"a page lost from a run":     func(c *Core) { c.pages.table[0].run-- },
		"a free page without handle": func(c *Core) { c.pages.table[1].handle = -1 },
		"a lent page without handle": func(c *Core) { c.pages.table[6].handle = -1 },
		"a hole with a handle":       func(c *Core) { c.pages.table[9].handle = 0 },
		"a page of another handle":   func(c *Core) { c.pages.table[6].handle = 0 },
		"a page that nobody owns":    func(c *Core) { c.pages.table[6].state = busy },
		"a client that holds more":   func(c *Core) { c.clients[1].heldPages++ },
		"a bit that is missing":      func(c *Core) { c.pages.mapped.set(1, 1, false) },
		"a bit that is too many":     func(c *Core) { c.pages.idle.set(6, 1, true) },
		"a count":                    func(c *Core) { c.pages.counts[free]++ },
		"bytes that do not exist":    func(c *Core) { c.reservedBytes += pageBytes },
		"bytes that were never lost": func(c *Core) { c.lostBytes += pageBytes },
		"bytes over the limit":       func(c *Core) { c.settings.LimitBytes = pageBytes },
		"a run that is in no bin":    func(c *Core) { c.pages.clean.bins.Remove(c.pages.links, 0) },
		"two runs that are not merged": func(c *Core) {
			c.pages.removeRun(0)
			c.pages.insertRun(Run{0, 2}, 0, 0)
			c.pages.insertRun(Run{2, 2}, 0, 0)
		},
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, 1)
			w.fill(1, 8)
			w.give(1, 0, Run{0, 4})
			w.token++
			w.await("warm") // grows, so that there is a hole after its rollback
			w.send(Warm{Token: w.token, Runs: []uint32{6}})
			w.perform(0, errBroken)
			require.NoError(t, w.core.Check())
			harm(w.core)
			assert.Error(t, w.core.Check())
		})
	}
}

// Effects are empty only if there is nothing at all to perform.
func TestEffectsAreEmptyOnlyWithoutAnything(t *testing.T) {
	t.Parallel()
	assert.True(t, (&Effects{}).Empty())
	for i, e := range []Effects{
		{Grants: make([]Grant, 1)},
		{Denials: make([]Denial, 1)},
		{Asks: make([]Client, 1)},
		{Job: &Job{}},
		{Ends: make([]End, 1)},
		{Gone: make([]Client, 1)},
	} {
		assert.False(t, e.Empty(), fmt.Sprint(i))
		e.reset()
		assert.True(t, e.Empty(), fmt.Sprint(i))
	}
}
