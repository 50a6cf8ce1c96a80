package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/pool/admission"
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
		require.Len(t, fx.Ends.Left(), 1)
		require.ErrorIs(t, fx.Ends.Left()[0].Err, ErrClosed)
	}
}

// A client is asked once at a time. It may keep pages that an ask for some did not name, and is asked again if a request wants all
// before it has answered.
func TestAnAskAndTheNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, second uint32
		again         bool
	}{
		"one page, then all":      {1, 0, true},
		"some, then all":          {5, 0, true},
		"one page, then another":  {1, 1, false},
		"all, and all once more":  {0, 0, false},
		"all, and then one page":  {0, 1, false},
		"some, and then one page": {5, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, 1)
			a, cl := &w.core.asks, w.core.clients.all[1]
			a.ask(&request{}, cl, c.first)
			assert.Equal(t, c.first > 0, cl.dirty)
			assert.Equal(t, c.first == 0, w.core.clients.unclaimed)
			a.ask(&request{}, cl, c.second)
			assert.Equal(t, []Ask{{1, c.first}}, w.core.fx.Asks.Left(), "once at a time")
			assert.Equal(t, c.again, cl.askedAgain)
			w.core.fx.Asks.Reset()
			assert.Equal(t, c.again, a.again(cl))
			assert.Equal(t, c.again, len(w.core.fx.Asks.Left()) == 1)
			assert.False(t, cl.askedAgain)
			w.core.fx.Asks.Reset()
		})
	}
}
