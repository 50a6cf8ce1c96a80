package core

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/admission"
	"github.com/go-vram/vram/internal/pool/memory"
)

// Recycled bytes count until the live peak has stayed for two requests in a row, and count again once it has risen. Each request is
// noted once.
func TestRecyclingMakesHandlesLongUntilThePeakIsStable(t *testing.T) {
	t.Parallel()
	b := &New(pageBytes, 64, tight(aPage)).budget
	counts := func() bool {
		before := b.recycledBytes
		b.recycled(1, pageBytes)
		return b.recycledBytes > before
	}
	note := func(usedBytes int64) *request {
		r := &request{}
		b.clients.usedBytes = usedBytes
		b.notePeak(r)
		require.True(t, r.noted)
		return r
	}
	assert.True(t, note(8*pageBytes).raised)
	assert.True(t, counts())
	r := note(8 * pageBytes)
	assert.False(t, r.raised)
	assert.True(t, counts(), "one that did not raise it")
	for range 3 {
		b.notePeak(r)
	}
	assert.True(t, counts(), "it was noted before")
	note(8 * pageBytes)
	assert.False(t, counts(), "the second")
	note(8 * pageBytes)
	assert.False(t, counts(), "and all after it")
	note(9 * pageBytes)
	assert.True(t, counts())
}

// A request would raise the live peak if the clients use more than it, unless it waits or was noted.
func TestWhatWouldRaiseThePeak(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		usedPages int64
		r         request
		raises    bool
	}{
		"more than the peak":            {usedPages: 9, raises: true},
		"as much":                       {usedPages: 8},
		"more, by one that was noted":   {usedPages: 9, r: request{ascent: ascent{noted: true}}},
		"more, while the request waits": {usedPages: 9, r: request{waiting: waiting{id: 1}}},
	} {
		core := New(pageBytes, 64, tight(aPage))
		core.budget.raise(8 * pageBytes)
		core.clients.usedBytes = c.usedPages * pageBytes
		assert.Equal(t, c.raises, core.asks.wouldRaisePeak(&c.r), name)
	}
}

// Growth is bought for a request that did not raise the peak, and that the driver has not refused; never in plain segments.
func TestWhatMayBuyGrowth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		core *Core
		r    request
		buys bool
	}{
		"any":            {core: New(pageBytes, 64, tight(aPage)), buys: true},
		"raised":         {core: New(pageBytes, 64, tight(aPage)), r: request{ascent: ascent{raised: true}}},
		"refused":        {core: New(pageBytes, 64, tight(aPage)), r: request{ascent: ascent{refusal: refusal{capped: true}}}},
		"plain segments": {core: NewPlain(pageBytes, 64, tight(aPage))},
	} {
		assert.Equal(t, c.buys, c.core.scheduler.ladder.grower.mayBuy(&c.r), name)
	}
}

// The rung that buys growth maps a window once moves have cost its price, also where they did so for the request itself.
func TestTheRungThatBuysGrowth(t *testing.T) {
	t.Parallel()
	for lacksNs, want := range map[int64]verdict{1: onward, 0: again} {
		m := alternating(t, aPage)
		b := &m.core.budget
		b.costNs = b.priceNs(4*pageBytes, b.reservedWith(4)) - lacksNs
		r := &request{kind: refill, client: 3, wish: wish{pages: 4}}
		assert.Equal(t, want, m.core.scheduler.ladder.grower.buy(r))
		assert.Equal(t, want == again, m.core.jobs.inFlight != nil)
	}
}

// A request has each figure of its message.
func TestARequestIsAsItsMessage(t *testing.T) {
	t.Parallel()
	r := newRefill(Refill{Client: 1, Token: 2, Pages: 3, More: []uint32{4}, Most: 5, Bytes: 6, RequestedBytes: 7, BlockBytes: 8, Patience: Waiting})
	assert.Equal(t, wish{pages: 3, more: []uint32{4}, most: 5, wants: []uint32{3, 4}, bytes: 6, requestedBytes: 7, blockBytes: 8}, r.wish)
	assert.Equal(t, []any{Client(1), uint64(2), Waiting}, []any{r.client, r.token, r.patience})
}

// A plain segment is no longer than a handle for the sake of a step, and as long as a longer request.
func TestAPlainSegmentIsNoLongerThanAHandle(t *testing.T) {
	t.Parallel()
	for pages, want := range map[uint32]int64{1: 4, 4: 4, 6: 6} {
		m := openMarket(t, 1, Settings{Policy: Policy{HandlePages: 4, Step: 1024, Slack: 4096}, LimitBytes: 64 * pageBytes})
		m.core = NewPlain(pageBytes, 64, m.settings)
		m.send(Join{Client: 1})
		m.alloc(1, 16)
		before := m.core.ReservedBytes()
		m.alloc(1, pages)
		assert.Equal(t, want, (m.core.ReservedBytes()-before)/pageBytes, "for %d pages", pages)
	}
}

// How much of a free run of 32 pages a request for two gets.
func TestHowMuchOfARunIsLent(t *testing.T) {
	t.Parallel()
	const run = 32
	for name, c := range map[string]struct {
		change func(w *world, r *request)
		lent   uint32
	}{
		"alone: all":                       {func(w *world, _ *request) { w.core.clients.remove(2) }, run},
		"among others: a part":             {func(*world, *request) {}, run / lendShare},
		"in turns with others: all":        {func(w *world, _ *request) { w.core.clients.climbs = 1 }, run},
		"no more than it can use":          {func(_ *world, r *request) { r.most = 3 }, 3},
		"no less than it wants":            {func(_ *world, r *request) { r.pages, r.most = 5, 1 }, 5},
		"one request waits":                {func(w *world, _ *request) { w.core.waiters.table.Arrive(admission.Waiter{ID: 1}) }, 2},
		"after a surplus":                  {func(w *world, _ *request) { w.core.clients.all[1].thriftTicks = 1 }, 2},
		"runs that the run does not hold":  {func(_ *world, r *request) { r.more = []uint32{run} }, 2},
		"runs that it just holds: a part":  {func(_ *world, r *request) { r.more = []uint32{run - 2} }, run / lendShare},
		"after a pause, too much reserved": {func(w *world, _ *request) { w.core.clients.all[1].wakingTicks = 1 }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, 2)
			w.fill(2, 1) // something is reserved that nobody uses
			w.core.clients.all[2].ownPeak = peak{}
			w.core.clients.count(w.core.clients.all[2])
			r := &request{client: 1, wish: wish{pages: 2}}
			c.change(w, r)
			assert.Equal(t, c.lent, w.core.answers.lendPages(r, run))
		})
	}
}

// A client's memory that was asked for may stay with it where its return says so: those who wait ask it again.
func TestWhichReturnsLeaveMemoryToAskFor(t *testing.T) {
	t.Parallel()
	run := []Run{{First: 0, Pages: 1}}
	for name, c := range map[string]struct {
		askedPages uint32
		m          Return
		dirty      bool
	}{
		"a return of one run":       {m: Return{Runs: run}, dirty: true},
		"a return of two":           {m: Return{Runs: append(run, run...)}, dirty: true},
		"memory that became free":   {m: Return{Stirred: true}, dirty: true},
		"a report":                  {m: Return{}},
		"an answer for all":         {m: Return{Answer: true, Runs: run}},
		"an answer for some":        {askedPages: 1, m: Return{Answer: true, Runs: run}, dirty: true},
		"an answer that keeps some": {m: Return{Answer: true, Kept: 1}, dirty: true},
	} {
		cl := &client{}
		cl.asked, cl.askedPages = true, c.askedPages
		assert.Equal(t, c.m.Answer, cl.note(c.m), name)
		assert.Equal(t, c.dirty, cl.dirty, name)
		cl.dirty = true
		cl.note(c.m)
		assert.True(t, cl.dirty, "it stays so until it is asked")
	}
}

// A client that is gone sleeps no more, nor does it wake.
func TestNothingOfAClientThatIsGoneSleepsOrWakes(t *testing.T) {
	t.Parallel()
	c := New(pageBytes, 64, tight(aPage))
	for _, m := range []Message{Sleep(1, 7), Wake(1, 7)} {
		fx := c.Step(m)
		require.Len(t, effect.Left(&fx.Ends), 1)
		require.ErrorIs(t, effect.Left(&fx.Ends)[0].Err, ErrClosed)
	}
}

// A client is asked once at a time. It may keep pages that an ask for some did not name, and is asked again if a request wants all
// before it has answered. A trim is to find what was freed after an answer that is on its way.
func TestAnAskAndTheNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, second uint32
		again         bool
		kind          kind // of the second request
	}{
		"one page, then all":       {1, 0, true, refill},
		"some, then all":           {5, 0, true, refill},
		"one page, then another":   {1, 1, false, refill},
		"all, and all once more":   {0, 0, false, refill},
		"all, and all for a trim":  {0, 0, true, trim},
		"some, and all for a trim": {5, 0, true, trim},
		"all, and then one page":   {0, 1, false, refill},
		"some, and then one page":  {5, 1, false, refill},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, 1)
			a, cl := &w.core.asks, w.core.clients.all[1]
			a.ask(&request{}, cl, c.first)
			assert.Equal(t, c.first > 0, cl.dirty)
			assert.Equal(t, c.first == 0, w.core.clients.unclaimed)
			a.ask(&request{kind: c.kind}, cl, c.second)
			assert.Equal(t, []Ask{{1, c.first}}, effect.Left(&w.core.fx.Asks), "once at a time")
			assert.Equal(t, c.again, cl.askedAgain)
			effect.Reset(&w.core.fx.Asks)
			assert.Equal(t, c.again, a.again(cl))
			assert.Equal(t, c.again, len(effect.Left(&w.core.fx.Asks)) == 1)
			assert.False(t, cl.askedAgain)
			effect.Reset(&w.core.fx.Asks)
		})
	}
}

// A client may return something unless it is a reservation, or has left with nothing.
func TestWhoMayReturnPages(t *testing.T) {
	t.Parallel()
	for heldPages := range uint64(3) {
		for _, gone := range []bool{false, true} {
			assert.Equal(t, !gone || heldPages > 0, (&client{heldPages: heldPages, gone: gone}).mayReturn(), "%d pages, gone: %t", heldPages, gone)
			assert.False(t, (&client{heldPages: heldPages, gone: gone, reserves: true}).mayReturn())
		}
	}
}

// After so many refusals by the driver a window keeps no free page in its place.
func TestTheLastWindowKeepsNothingInPlace(t *testing.T) {
	t.Parallel()
	for refusals := range maxRefusals + 1 {
		w := settled(t, 1)
		w.fill(1, 8)
		w.give(1, 0, Run{First: 4, Pages: 4})
		r := &request{client: 1, wish: wish{pages: 6}, ascent: ascent{askedAll: true, refusal: refusal{refusals: refusals}}}
		require.Equal(t, again, w.core.scheduler.ladder.grower.recycle(r))
		first := uint32(4)
		if refusals >= holesRefusals {
			first = 8
		}
		assert.Equal(t, Run{First: first, Pages: 6}, w.core.jobs.inFlight.Window, "%d refusals", refusals)
	}
}

// What a client cannot return and what it has of others is taken from its answers alone.
func TestOnlyAnswersReportWhatIsPending(t *testing.T) {
	t.Parallel()
	m := Return{UncoveredBytes: 1, PendingBytes: 2, LetsOnly: true}
	cl := &client{}
	cl.note(m)
	assert.Equal(t, answer{}, cl.answer)
	m.Answer = true
	cl.note(m)
	assert.Equal(t, answer{uncoveredBytes: 1, pendingBytes: 2, chargedToOthers: true}, cl.answer)
}

// An answer leaves a client no more free pages than it published and has not returned, nothing if it returned less than it was
// asked for, and no range longer than all of them.
func TestAnAnswerLowersWhatIsPublished(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint32Range(0, 6)
		before := Usage{UsedBytes: 5, FreePages: n.Draw(t, "free"), Stale: rapid.Bool().Draw(t, "stale")}
		before.MaxFreePages = rapid.Uint32Range(0, before.FreePages).Draw(t, "longest")
		pages, asked := n.Draw(t, "returned"), n.Draw(t, "asked")
		after := before
		after.returned(pages, asked)
		left := int(before.FreePages) - int(pages)
		if asked == 0 || pages < asked {
			left = 0
		}
		want := before
		want.FreePages = uint32(max(0, left))
		want.MaxFreePages = min(before.MaxFreePages, want.FreePages)
		require.Equal(t, want, after)
	})
}

// All pages of an answer count, whether it has them in one run or in several.
func TestAllRunsOfAnAnswerLowerWhatIsPublished(t *testing.T) {
	t.Parallel()
	for _, runs := range [][]Run{nil, {{First: 0, Pages: 3}}, {{First: 0, Pages: 1}, {First: 2, Pages: 3}}} {
		s := openShop(t)
		cl := s.core.clients.all[1]
		s.core.SetUsage(1, Usage{UsedBytes: 2 * pageBytes, FreePages: 6, MaxFreePages: 5})
		cl.askedPages = 1
		s.core.Step(Return{Client: 1, Runs: runs, Sent: uint64(len(runs)), Answer: true})
		left := map[int]uint32{0: 0, 1: 3, 2: 2}[len(runs)]
		assert.Equal(t, left, cl.usage.FreePages, "%v", runs)
		assert.Equal(t, left, cl.usage.MaxFreePages, "%v", runs)
	}
}

// A request beyond the budget gets a longer window than it wants as long as that keeps within its bound, up to the last byte.
func TestAnOvergrownWindowKeepsWithinItsBound(t *testing.T) {
	t.Parallel()
	s := Settings{Policy: Policy{HandlePages: 4, OverStep: 512}, LimitBytes: 64 * pageBytes}
	w := newWorld(t, 64, 64, s)
	w.clients[1] = &holder{}
	w.send(Join{Client: 1})
	w.fill(1, 20)
	g := &w.core.scheduler.ladder.grower
	steps := g.pagesOf(s.Policy.OverStep)
	require.Greater(t, steps, uint32(2))
	for _, pages := range []uint32{1, steps - 1, steps} {
		for _, beyond := range []int64{-1, 0, 1} {
			for more := range 3 { // a batch is never overgrown: its other runs need the memory
				r := &request{client: 1, wish: wish{pages: pages, more: make([]uint32, more)}, ascent: ascent{raised: true}}
				window, ok := g.overgrown(r, int64(20+steps)*pageBytes+beyond)
				assert.Equal(t, pages < steps && beyond >= 0 && more == 0, ok, "%d pages, %d bytes, %d more runs", pages, beyond, more)
				if ok {
					assert.Equal(t, steps, window.Run.Pages)
				}
			}
		}
	}
}

// A window of memory that waits for others' work is filled up with new handles as long as that keeps within its bound, up to the
// last byte.
func TestAWindowThatWaitsKeepsWithinItsBound(t *testing.T) {
	t.Parallel()
	for _, beyond := range []int64{-1, 0, 1} {
		w := settled(t, 2)
		w.settings.Waits = WaitsAlways
		w.core.SetSettings(w.settings)
		w.fill(1, 8)
		w.give(1, 1, Run{First: 7, Pages: 1})
		g := &w.core.scheduler.ladder.grower
		r := &request{client: 2, wish: wish{pages: 3}}
		require.EqualValues(t, 8*pageBytes, w.core.ReservedBytes())
		assert.Equal(t, beyond >= 0, g.lend(r, 10*pageBytes+beyond), "%d bytes", beyond)
		if beyond >= 0 {
			assert.Equal(t, Run{First: 7, Pages: 3}, w.core.InFlight().Window)
		}
	}
}

// The driver may refuse memory to a request as often as it is documented; one refusal more, or another error, ends it.
func TestHowOftenTheDriverMayRefuse(t *testing.T) {
	t.Parallel()
	l := &settled(t, 1).core.scheduler.ladder
	r := &request{client: 1}
	for range maxRefusals {
		l.jobFailed(r, memory.Outcome{FailedAt: memory.Create}, cudadrv.OutOfMemory, 0)
		require.Equal(t, rungAskAll, r.rung)
	}
	l.jobFailed(r, memory.Outcome{FailedAt: memory.Create}, cudadrv.OutOfMemory, 0)
	assert.Equal(t, rungDeny, r.rung)
	r = &request{client: 1}
	l.jobFailed(r, memory.Outcome{FailedAt: memory.Create}, errBroken, 0)
	assert.Equal(t, rungDeny, r.rung)
}

// The other clients look once for a request, also if they have freed more memory since.
func TestOthersLookOnceForARequest(t *testing.T) {
	t.Parallel()
	w := settled(t, 3)
	looks := func(r *request) int {
		for id := Client(1); id <= 3; id++ {
			w.core.SetUsage(id, Usage{Stale: true})
		}
		w.core.fx.reset()
		w.core.asks.look(r)
		return len(effect.Left(&w.core.fx.Looks))
	}
	r := &request{client: 2}
	assert.Equal(t, 2, looks(r))
	assert.Zero(t, looks(r))
	assert.Equal(t, 2, looks(&request{client: 2}))
}

// A request that waits is tried each time as it came, also after it had some of its runs and failed.
func TestAWaitingRequestIsTriedAsItCame(t *testing.T) {
	t.Parallel()
	for _, wants := range [][]uint32{{3}, {3, 2, 1}} {
		r := newRefill(Refill{Client: 1, Token: 1, Pages: wants[0], More: slices.Clone(wants[1:]), Patience: Waiting})
		r.wants = slices.Clone(wants)
		for range 2 {
			r.restart()
			assert.Equal(t, wants[0], r.pages)
			assert.Equal(t, wants[1:], append([]uint32{}, r.more...))
			require.NoError(t, r.err)
			assert.Equal(t, ascent{rung: rungOffer}, r.ascent)
			r.pages, r.err, r.looked, r.refusals = 9, errBroken, true, 2
			for i := range r.more {
				r.more[i] = 9
			}
		}
	}
}

// A request that waits is refused at once if it wants more than the limit, and waits if it wants all of it: its holders may free.
func TestNoRequestWaitsForMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	for pages, waits := range map[uint32]bool{7: true, 8: true, 9: false} {
		s := openShop(t)
		fx := s.core.Step(waitAs(99, pages))
		assert.Equal(t, waits, len(effect.Left(&fx.Denials)) == 0, "%d pages", pages)
		assert.Equal(t, waits, s.core.waiters.count() == 1)
	}
}

// A client that is apart takes what others have freed once its fences were asked for, and not before.
func TestAnApartClientAsksForFencesBeforeItTakes(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.do(Join{Client: 4})
	s.do(Apart(4))
	s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 6}}, Fence: 1, Sent: 1})
	s.passed = []Passed{{1, 1}}
	var jobs []string
	s.fails = func(_ int, j *Job) (done int, err error) {
		jobs = append(jobs, describe(j))
		require.LessOrEqual(t, len(jobs), 2)
		return len(j.Ops), nil
	}
	s.do(Refill{Client: 4, Token: 5, Pages: 2, Bytes: 2 * pageBytes})
	require.True(t, s.served[5])
	assert.Equal(t, "query job poll 1", jobs[0])
	assert.Contains(t, jobs[1], "window job")
}

// A client holds memory from its first byte on.
func TestWhoHoldsMemory(t *testing.T) {
	t.Parallel()
	assert.False(t, (&client{}).sum().holding)
	assert.True(t, (&client{liveBytes: 1}).sum().holding)
	assert.True(t, (&client{heldPages: 1}).sum().holding)
}

// A request whose fences have passed, or for which memory came, while a watch over them began tries the last resorts again.
func TestWhatHappensBeforeAHoldIsNotMissed(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(w *world){
		"a return":            func(w *world) { w.give(1, 0, Run{First: 0, Pages: 1}) },
		"an excluded client":  func(w *world) { w.send(Exclude{Client: 2, Excluded: true}) },
		"the end of a watch":  func(w *world) { w.send(WatchOver{}) },
		"a fence that passes": func(w *world) { w.core.passed(Passed{Client: 1, Fence: 1}) },
		"nothing":             nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, 2)
			w.fill(1, 8)
			w.give(1, 1, Run{First: 7, Pages: 1})
			l := &w.core.scheduler.ladder
			r := &request{client: 2, wish: wish{pages: 60}, ascent: ascent{rung: rungWait, refusal: refusal{refusals: maxRefusals}}}
			require.False(t, l.climb(r))
			require.Equal(t, rungHold, r.rung)
			w.core.jobs.inFlight = nil
			want, left := rungDeny, maxRefusals
			if happens != nil {
				w.core.fx.reset()
				happens(w)
				want, left = rungBorrow, clearingRefusals
			}
			require.False(t, l.climb(r))
			assert.Equal(t, want, r.rung)
			assert.Equal(t, left, r.refusals)
		})
	}
}

// Whether the other clients are asked for all before growth beyond the budget.
func TestWhenAllAreAsked(t *testing.T) {
	t.Parallel()
	const over = 3 * pageBytes
	for name, c := range map[string]struct {
		change func(w *world, r *request)
		plain  bool
		asks   bool
	}{
		"another has free pages":      {change: func(*world, *request) {}, asks: true},
		"it has asked":                {change: func(_ *world, r *request) { r.askedAll = true }},
		"the driver has refused":      {change: func(_ *world, r *request) { r.capped = true }},
		"none has free pages":         {change: func(w *world, _ *request) { w.core.SetUsage(1, Usage{UsedBytes: 8 * pageBytes}) }},
		"none, and beyond the limit":  {change: beyondTheLimit, asks: true},
		"its own are no other's":      {change: func(_ *world, r *request) { r.client = 1 }},
		"moves have cost the price":   {change: func(w *world, _ *request) { w.core.budget.costNs = 1 << 40 }},
		"plain segments":              {change: func(*world, *request) {}, plain: true},
		"plain ones beyond the limit": {change: beyondTheLimit, plain: true, asks: true},
		"plain ones at the limit":     {change: atTheLimit, plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 64, 64, tight(aPage))
			if c.plain {
				w.core = NewPlain(pageBytes, 64, w.settings)
			}
			for id := Client(1); id <= 2; id++ {
				w.clients[id] = &holder{}
				w.send(Join{Client: id})
			}
			w.fill(1, 8)
			w.core.SetUsage(1, Usage{UsedBytes: 4 * pageBytes, FreePages: 4, MaxFreePages: 4})
			r := &request{client: 2, wish: wish{pages: 3}}
			reserved := int64(11 * pageBytes)
			c.change(w, r)
			assert.Equal(t, c.asks, w.core.scheduler.ladder.grower.asksAll(r, over, reserved))
		})
	}
}

func atTheLimit(w *world, r *request) {
	beyondTheLimit(w, r)
	w.core.settings.LimitBytes++
}

func beyondTheLimit(w *world, _ *request) {
	w.core.SetUsage(1, Usage{UsedBytes: 8 * pageBytes})
	w.core.settings.LimitBytes = 11*pageBytes - 1
}

// A request asks for as many pages as are missing in its window, and not for those that are free in it.
func TestARequestCollectsWhatItsWindowLacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 64, 64, tight(aPage))
	w.candid = true
	for id := Client(1); id <= 2; id++ {
		w.clients[id] = &holder{}
		w.send(Join{Client: id})
	}
	w.fill(1, 12)
	w.give(1, 0, Run{First: 8, Pages: 4})
	w.core.SetUsage(1, Usage{UsedBytes: 12 * pageBytes, FreePages: 5, MaxFreePages: 1})
	w.core.fx.reset()
	w.core.asks.collect(&request{client: 2, wish: wish{pages: 6}, ascent: ascent{noted: true}})
	assert.Equal(t, []Ask{{Client: 1, Pages: 2}}, effect.Left(&w.core.fx.Asks))
}

// The accounts that hold memory, and the usage of accounts with a share, are what the last call set.
func TestSharesReachTheOrderOfThoseThatWait(t *testing.T) {
	t.Parallel()
	w := settled(t, 1)
	waiter := admission.Waiter{ID: 1, Account: 7, Bytes: 2, ChargedBytes: 2}
	assert.False(t, w.core.waiters.table.Borrows(waiter))
	w.core.SetTenants([]admission.Account{7}, []admission.Usage{{Account: 7, ChargedBytes: 3, ShareBytes: 2}})
	assert.True(t, w.core.waiters.table.Borrows(waiter))
	assert.Contains(t, w.core.scheduler.noProgress.accounts(), admission.Account(7))
}

// A warm-up that finds no room in the arena fails, and frees what it has.
func TestAWarmUpLongerThanTheArenaFails(t *testing.T) {
	t.Parallel()
	c := New(pageBytes, 16, Settings{Policy: Policy{HandlePages: 4}, LimitBytes: 64 * pageBytes})
	fx := c.Step(Warm{Token: 5, Runs: []uint32{17}})
	require.Len(t, effect.Left(&fx.Ends), 1)
	var limit *LimitError
	require.ErrorAs(t, effect.Left(&fx.Ends)[0].Err, &limit)
	assert.EqualValues(t, 17*pageBytes, limit.WantedBytes)
}

// Where free memory exceeds the bounds of the cache in bytes and in runs, one job at a time releases it.
func TestTheBoundsOfTheCacheHoldOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := settled(t, 1)
	w.fill(1, 20)
	w.settings.CacheBytes, w.settings.CacheRuns = 8*pageBytes, 1
	w.core.SetSettings(w.settings)
	w.give(1, 0, Run{First: 0, Pages: 4}, Run{First: 8, Pages: 4}, Run{First: 16, Pages: 4})
	require.NotNil(t, w.job)
	w.perform(-1, nil)
	require.NotNil(t, w.job)
	assert.EqualValues(t, 16*pageBytes, w.core.ReservedBytes())
	w.perform(-1, nil)
	assert.Nil(t, w.job)
	assert.EqualValues(t, 12*pageBytes, w.core.ReservedBytes())
}

// Where there are more free runs than the bound of the cache allows, the shortest ones go back to the driver whole: longer handles stay, and so
// does a run that has a part of a handle: its whole handles alone would leave as many runs.
func TestTheShortestRunsLeaveTheCache(t *testing.T) {
	t.Parallel()
	short, shorter, long := Run{First: 0, Pages: 3}, Run{First: 6, Pages: 2}, Run{First: 12, Pages: 12}
	part, middle := Run{First: 25, Pages: 1}, Run{First: 31, Pages: 6} // pages 28 to 31 and 32 to 35 are a handle each
	for name, c := range map[string]struct {
		free, kept []Run
		most       int
	}{
		"one too many":              {[]Run{short, shorter, long}, []Run{short, long}, 2},
		"two too many":              {[]Run{short, shorter, long}, []Run{long}, 1},
		"as many as allowed":        {[]Run{short, shorter, long}, []Run{short, shorter, long}, 3},
		"any number":                {[]Run{short, shorter, long}, []Run{short, shorter, long}, 0},
		"a part of a handle":        {[]Run{short, part}, []Run{part}, 1},
		"parts of handles alone":    {[]Run{part, middle}, []Run{part, middle}, 1},
		"a handle in the middle":    {[]Run{long, middle}, []Run{middle}, 1},
		"of equal ones the first":   {[]Run{{First: 0, Pages: 3}, {First: 4, Pages: 3}}, []Run{{First: 4, Pages: 3}}, 1},
		"one long handle and short": {[]Run{{First: 12, Pages: 4}, {First: 0, Pages: 5}}, []Run{{First: 0, Pages: 5}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, 1)
			for _, handlePages := range []uint32{1, 4} {
				w.settings.Policy.HandlePages = handlePages
				w.core.SetSettings(w.settings)
				w.fill(1, map[uint32]uint32{1: 12, 4: 28}[handlePages])
			}
			w.settings.CacheRuns = c.most
			w.core.SetSettings(w.settings)
			w.give(1, 0, c.free...)
			for w.job != nil {
				w.perform(-1, nil)
			}
			var kept []Run
			w.core.eachFree(func(r Run, _ memory.Tag) { kept = append(kept, r) })
			assert.ElementsMatch(t, c.kept, kept)
			w.send(Tick{})
			assert.Nil(t, w.job, "no more is released at a tick")
		})
	}
}
