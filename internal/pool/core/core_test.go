package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/memory"
)

// settled returns a world with clients 1 up to n and a pool that grows freely.
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

// A request that fits in free memory is granted in the same step, whatever is in flight or waits before it.
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
			w.give(1, 1, Run{First: 7, Pages: 1})
			w.give(2, 0)
		},
		"a refill that waits for answers": func(w *world) { w.want(1, 30) },
		"a refill's job":                  func(w *world) { w.want(1, 30); w.give(1, 0) },
		"a poll":                          func(w *world) { w.give(1, 1, Run{First: 7, Pages: 1}); w.send(Tick{}) },
	}
	for name, begin := range inFront {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, 2)
			w.fill(1, 8)
			w.fill(2, 1)
			w.give(1, 0, Run{First: 0, Pages: 4})
			begin(w)
			require.True(t, w.job != nil || len(w.asked) > 0, "nothing is in front")
			w.want(2, 3)
			assert.NotContains(t, w.refills, w.token, "the refill waits")
		})
	}
}

// A refill is answered once, also when memory is freed while its own job is in flight; the window is free then.
func TestRefillThatWasServedFromElsewhereLeavesItsWindowFree(t *testing.T) {
	t.Parallel()
	w := settled(t, 2)
	w.fill(1, 8)
	w.want(2, 5)
	w.give(2, 0)
	require.NotNil(t, w.job, "it grows")
	w.give(1, 0, Run{First: 0, Pages: 6})
	assert.Empty(t, w.refills, "free memory serves it")
	w.perform(-1, nil)
	assert.EqualValues(t, 5*pageBytes, w.core.freeBytes())
}

// Such a window keeps the tag of the free pages that it took: they are still in use on the device.
func TestWindowThatServedNobodyKeepsItsTag(t *testing.T) {
	t.Parallel()
	w := settled(t, 2)
	w.fill(1, 8)
	w.fill(2, 4)
	w.give(2, 1, Run{First: 10, Pages: 2})
	w.want(2, 5)
	w.give(2, 1)
	require.Equal(t, "####", w.drawing()[10:14], "the window takes the tagged pages")
	w.give(1, 0, Run{First: 0, Pages: 6})
	require.Empty(t, w.refills)
	w.perform(-1, nil)
	assert.EqualValues(t, 2*pageBytes, w.core.pendingBytes(), "no more than had it")
	w.want(1, 5)
	assert.Contains(t, w.refills, w.token, "nobody else is granted them")
}

// JobDone with a job that is not in flight, and a Return of pages that are not lent to that client, change nothing.
func TestNonsenseIsIgnored(t *testing.T) {
	t.Parallel()
	w := settled(t, 2)
	w.fill(1, 4)
	before := w.sums()
	for _, r := range []Run{{First: 0, Pages: 5}, {First: 3, Pages: 0}, {First: 3, Pages: 1<<32 - 1}, {First: 1<<32 - 1, Pages: 2}, {First: 60, Pages: 1}} {
		w.send(Return{Client: 1, Runs: []Run{r}})
	}
	w.send(Return{Client: 2, Runs: []Run{{First: 0, Pages: 4}}})
	w.send(Return{Client: 7, Runs: []Run{{First: 0, Pages: 4}}, Answer: true})
	w.send(JobDone{Job: &Job{}, Err: errBroken})
	w.send(JobDone{Err: errBroken})
	w.send(Leave{Client: 7})
	assert.Equal(t, before, w.sums())
}

// The peaks restart at the present values.
func TestPeaksAreReset(t *testing.T) {
	t.Parallel()
	w := settled(t, 1)
	w.fill(1, 8)
	w.give(1, 0, Run{First: 0, Pages: 8})
	w.token++
	w.await("trim")
	w.send(Trim{Token: w.token, KeepBytes: 4 * pageBytes})
	w.give(1, 0)
	w.perform(-1, nil)
	c := w.core
	assert.EqualValues(t, 8*pageBytes, c.peakReservedBytes())
	assert.EqualValues(t, 8*pageBytes, c.clients.givenPeak.Peak())
	c.ResetPeaks(nil)
	assert.EqualValues(t, 4*pageBytes, c.peakReservedBytes())
	assert.Zero(t, c.clients.givenPeak.Peak())
	assert.Equal(t, "reserved 4194304 free 4194304 lent 0 busy 0 waiting 0", c.String())
	assert.Equal(t, w.settings, c.Settings())
}

// The peak of live memory restarts at the bytes of callers as they are given, and no higher than what is lent.
func TestThePeakOfLiveMemoryRestartsAtWhatIsLive(t *testing.T) {
	t.Parallel()
	w := settled(t, 1)
	w.fill(1, 4)
	for _, test := range []struct{ givenBytes, peakBytes int64 }{{3 * pageBytes, 3 * pageBytes}, {5 * pageBytes, 4 * pageBytes}, {1, 1}} {
		w.core.ResetPeaks(map[Client]int64{1: test.givenBytes})
		assert.Equal(t, test.peakBytes, w.core.clients.givenPeak.Peak())
	}
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
		w.give(id, 1, Run{First: 0, Pages: 3})
		w.clients[id].left = true
		w.send(Leave{Client: id})
		w.send(Tick{})
		w.clients[id].passed = 1
		w.perform(-1, nil)
	}
	assert.Empty(t, w.core.clients.all)
	assert.Empty(t, w.core.clients.ids)
	assert.Empty(t, w.core.fences.watches)
	assert.Empty(t, w.core.memory.TaggedClients())
	assert.EqualValues(t, 3*pageBytes, w.core.ReservedBytes())
}

// A driver that refuses everything is asked a bounded number of times, and the world goes quiet.
func TestRefusingDriverIsNotAskedWithoutEnd(t *testing.T) {
	t.Parallel()
	w := settled(t, 1)
	w.fill(1, 16)
	w.settings.CacheBytes, w.settings.CacheRuns = pageBytes, 1
	w.core.SetSettings(w.settings)
	w.give(1, 0, Run{First: 0, Pages: 4}, Run{First: 8, Pages: 4})
	for n := 0; w.job != nil; n++ {
		require.Less(t, n, 10)
		w.perform(0, errBroken)
	}
	w.send(Tick{})
	assert.NotNil(t, w.job, "a tick tries again")
}

// Check sees damage to the core's own state.
func TestCheckSeesDamage(t *testing.T) {
	t.Parallel()
	for want, harm := range map[string]func(c *Core){
		"the books say 5":      func(c *Core) { c.clients.all[1].heldPages++ },
		"the clients come to":  func(c *Core) { c.clients.usedBytes++ },
		"over the limit":       func(c *Core) { c.settings.LimitBytes = pageBytes },
		"the books say 4 in 2": func(c *Core) { c.memory.Free(Run{First: 0, Pages: 4}, memory.Tag{}) },
		"callers of all":       func(c *Core) { c.clients.givenBytes++ },
		"requests wait for":    func(c *Core) { c.waiters.demandBytes++ },
		"the books say 1 for":  func(c *Core) { c.waiters.named[ticket{}] = nil },
		"waits no more":        func(c *Core) { c.waiters.trying = &request{client: 9} },
		"under another name": func(c *Core) {
			c.waiters.parked[7] = &request{client: 1, token: 3}
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := settled(t, 1)
			w.fill(1, 8)
			w.give(1, 0, Run{First: 0, Pages: 4})
			require.NoError(t, w.core.Check())
			harm(w.core)
			assert.ErrorContains(t, w.core.Check(), want)
		})
	}
}

// Check compares each sum over the clients.
func TestCheckComparesEachSum(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(s *sums){
		"used":    func(s *sums) { s.usedBytes-- },
		"peak":    func(s *sums) { s.ownPeakBytes-- },
		"holding": func(s *sums) { s.holding-- },
		"holders": func(s *sums) { s.holders = s.holders[1:] },
		"free":    func(s *sums) { s.free = nil },
		"stale":   func(s *sums) { s.stale = append(s.stale, 9) },
	} {
		w := settled(t, 2)
		w.fill(1, 8)
		w.fill(2, 4)
		w.core.SetUsage(1, Usage{UsedBytes: pageBytes, FreePages: 2, MaxFreePages: 1})
		require.NoError(t, w.core.Check())
		harm(&w.core.clients.sums)
		assert.ErrorContains(t, w.core.Check(), "the clients come to", name)
	}
}

// Effects are empty only if there is nothing at all to perform.
func TestEffectsAreEmptyOnlyWithoutAnything(t *testing.T) {
	t.Parallel()
	var e Effects
	assert.True(t, e.Empty())
	for i, leave := range []func(){
		func() { effect.Push(&e.Grants, Grant{}) },
		func() { effect.Push(&e.Denials, Denial{}) },
		func() { effect.Push(&e.Offers, Offer{}) },
		func() { effect.Push(&e.Asks, Ask{Client: 1}) },
		func() { effect.Push(&e.Looks, 1) },
		func() { e.Job = &Job{} },
		func() { effect.Push(&e.Ends, End{}) },
		func() { effect.Push(&e.Gone, 1) },
	} {
		leave()
		assert.False(t, e.Empty(), fmt.Sprint(i))
		e.reset()
		assert.True(t, e.Empty(), fmt.Sprint(i))
	}
}
