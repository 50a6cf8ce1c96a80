package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// aPage is a worth of one handle a page.
const aPage = worthUnit

// alternating makes client 1 hold memory that its callers have freed, and client 2 the rest of the budget.
func alternating(t *testing.T, worth int64) *market {
	t.Helper()
	m := openMarket(t, 3, tight(worth))
	m.alloc(1, 8)
	m.alloc(2, 16)
	m.alloc(3, 4)
	m.drop(1)
	m.alloc(1, 4)
	m.moved, m.core.budget.costNs = moves{}, 0
	return m
}

// An ask costs, and so do each run that comes back for it and each handle that is moved. A client's
// own answer costs nothing, nor do the answers to a trim.
func TestMovesBookTheirCost(t *testing.T) {
	t.Parallel()
	m := alternating(t, 1000)
	cost := &m.core.budget.costNs
	m.miss(3, 4)
	require.Equal(t, moves{asks: 1, runs: 1}, m.moved)
	assert.EqualValues(t, askNs+runNs, *cost)

	m.token++
	m.await("trim")
	m.drop(2)
	m.send(Trim{Token: m.token, KeepBytes: 20 * pageBytes})
	m.settle()
	assert.EqualValues(t, askNs+runNs, *cost)

	m = openMarket(t, 2, tight(1000))
	m.alloc(1, 12)
	clear(m.inUse[0:4]) // two whole handles, not side by side
	clear(m.inUse[8:12])
	m.publish()
	m.miss(2, 8)
	require.Equal(t, moves{asks: 1, runs: 2, handles: 1}, m.moved, "the other is part of the window")
	assert.Equal(t, m.moved.ns(), m.core.budget.costNs)
}

// An answer books the time that it took: no less than an ask takes at least, and no more than eight
// times as much, since a longer one has waited for something else.
func TestAnAnswerBooksItsTime(t *testing.T) {
	t.Parallel()
	const least = askNs + 2*runNs
	for tookNs, booked := range map[int64]int64{
		0: least, least - 1: least, least + 1: least + 1, 8 * least: 8 * least, 1 << 40: 8 * least,
	} {
		b := &New(pageBytes, 8, tight(aPage)).budget
		b.asked(2, tookNs)
		assert.Equal(t, booked, b.costNs, "%d ns", tookNs)
	}
}

// An answer books the time that its message has, and no other figure.
func TestTheTimeOfAnAnswerIsBooked(t *testing.T) {
	t.Parallel()
	for kind, booked := range map[kind]int64{refill: 3 * askNs, trim: 0} {
		w := settled(t, 2)
		w.fill(1, 4)
		w.core.asks.ask(&request{kind: kind, client: 2}, w.core.clients.all[1], 0)
		before := w.core.budget.costNs
		w.core.Step(Return{Client: 1, Answer: true, TookNs: 3 * askNs, LiveBytes: 4 * pageBytes, UncoveredBytes: pageBytes})
		assert.Equal(t, booked, w.core.budget.costNs-before, "only a move has a price")
	}
}

// Growth beyond the budget is bought exactly once moves have cost the price, which is taken off then.
func TestGrowthIsBoughtAtItsPrice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		worth, costNs int64
		bought        bool
	}{
		"a moment before":      {aPage, 4*firstCreateNs - 1, false},
		"then":                 {aPage, 4 * firstCreateNs, true},
		"half as much a page":  {aPage / 2, 2 * firstCreateNs, true},
		"never, however dear":  {0, 1 << 50, false},
		"without any cost yet": {aPage, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := alternating(t, c.worth)
			b := &m.core.budget
			reserved, soft := m.core.ReservedBytes(), b.softBytes()
			require.Equal(t, reserved, soft)
			b.costNs = c.costNs
			m.miss(3, 4)
			if !c.bought {
				assert.EqualValues(t, 1, m.moved.asks)
				assert.Equal(t, reserved, m.core.ReservedBytes())
				assert.Zero(t, b.boughtBytes)
				return
			}
			assert.Zero(t, m.moved, "nothing is moved")
			assert.Equal(t, reserved+4*pageBytes, m.core.ReservedBytes())
			assert.EqualValues(t, 4*pageBytes, b.boughtBytes)
			assert.Equal(t, c.costNs-4*c.worth*firstCreateNs/worthUnit, b.costNs)
		})
	}
}

// A part of a page costs a page: else small parts would add up to growth for nothing.
func TestAPartOfAPageCostsAPage(t *testing.T) {
	t.Parallel()
	m := alternating(t, aPage)
	b := &m.core.budget
	assert.EqualValues(t, firstCreateNs, b.priceNs(1, 0))
	assert.EqualValues(t, firstCreateNs, b.priceNs(pageBytes, 0))
	assert.EqualValues(t, 2*firstCreateNs, b.priceNs(pageBytes+1, 0))
	assert.Zero(t, b.priceNs(0, 0))
	assert.True(t, b.affords(0, 0))
	assert.False(t, b.affords(1, 0))
}

// A purchase costs its price and raises the budget by its bytes, from the first byte on; nothing costs nothing.
func TestEachByteIsBought(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{-pageBytes, -1, 0, 1, 2, pageBytes, pageBytes + 1} {
		b := &alternating(t, aPage).core.budget
		price := b.priceNs(max(0, bytes), 0)
		b.costNs, b.boughtBytes = price, 0
		require.True(t, b.affords(bytes, 0))
		b.buy(bytes, 0)
		assert.Zero(t, b.costNs, "%d bytes", bytes)
		assert.Equal(t, max(0, bytes), b.boughtBytes)
		b.boughtBytes = 0
		b.force(bytes)
		assert.Equal(t, max(0, bytes), b.boughtBytes)
		b.costNs, b.boughtBytes = 0, 0
		b.boughtBytes = b.reservedWith(1) - b.softBytes() - bytes // so far beyond the budget is a page
		assert.Equal(t, bytes <= 0, b.buys(&request{client: 1}, 1), "%d bytes", bytes)
	}
}

// A page costs four times as much beyond nine eighths of the clients' own peaks.
func TestGrowthBeyondAllNeedsIsDear(t *testing.T) {
	t.Parallel()
	m := alternating(t, aPage)
	b := &m.core.budget
	need := b.clients.ownPeakBytes
	assert.EqualValues(t, (8+16+4)*pageBytes, need)
	assert.EqualValues(t, firstCreateNs, b.priceNs(pageBytes, need+need/8))
	assert.EqualValues(t, 4*firstCreateNs, b.priceNs(pageBytes, need+need/8+1))
	for costNs, bought := range map[int64]bool{4*4*firstCreateNs - 1: false, 4 * 4 * firstCreateNs: true} {
		m := alternating(t, aPage)
		for _, cl := range m.core.clients.all {
			cl.ownPeak = peak{now: cl.ownPeak.now / 2}
			m.core.clients.count(cl)
		}
		m.core.budget.costNs = costNs
		m.clients[1].live, m.clients[2].live = 0, 0 // of this moment; publish would raise their peaks again
		assert.Equal(t, bought, m.core.budget.affords(4*pageBytes, m.core.ReservedBytes()+4*pageBytes))
	}
}

// Purchases are part of the budget anyway once the live peak has risen by as much: their price is refunded.
func TestAHigherPeakPaysForWhatWasBought(t *testing.T) {
	t.Parallel()
	m := alternating(t, aPage)
	b := &m.core.budget
	b.costNs = 4 * firstCreateNs
	m.miss(3, 4)
	require.EqualValues(t, 4*pageBytes, b.boughtBytes)
	require.Zero(t, b.costNs)
	require.True(t, b.raise(b.livePeak.bytes()+3*pageBytes))
	assert.EqualValues(t, pageBytes, b.boughtBytes)
	assert.EqualValues(t, 3*firstCreateNs, b.costNs)
	assert.False(t, b.raise(b.livePeak.bytes()))
}

// wide is like tight, with a slack of several clients that may widen by a step and a half.
func wide(worth int64) Settings {
	s := tight(worth)
	s.Policy.MostSharedSlack = slackStep + slackStep/2
	return s
}

// contending returns a market with three clients that hold all of a large budget, so that a step of slack is a few pages.
func contending(t *testing.T, s Settings) *market {
	t.Helper()
	m := openMarket(t, 3, s)
	m.alloc(1, 128)
	m.alloc(2, 96)
	m.alloc(3, 32)
	m.drop(1)
	m.alloc(1, 64)
	m.moved, m.core.budget.costNs = moves{}, 0
	return m
}

// The slack of several clients widens by a step exactly once moves have cost its price, and no further than the policy has it.
func TestSlackWidensAtItsPrice(t *testing.T) {
	t.Parallel()
	m := contending(t, wide(aPage))
	b := &m.core.budget
	live := b.livePeak.bytes()
	require.EqualValues(t, 256*pageBytes, live)
	require.Equal(t, live, b.softBytes())
	const price = 256 / 1024. * slackStep * firstCreateNs

	b.costNs = price - 1
	require.False(t, b.widen())
	b.costNs = price
	m.miss(3, 8)
	assert.Zero(t, m.moved, "the pool grows within the wider budget")
	assert.Zero(t, b.costNs)
	assert.Zero(t, b.boughtBytes)
	assert.Equal(t, live+8*pageBytes, b.softBytes())

	b.costNs = price / 2
	require.True(t, b.widen(), "half a step is left, at half the price")
	assert.Zero(t, b.costNs)
	b.costNs = 1 << 50
	assert.False(t, b.widen())
	assert.EqualValues(t, slackStep+slackStep/2, b.extraSlack)
}

// Where no other client has anything to return, growth is forced: it costs nothing, and widens the slack.
func TestForcedGrowthWidensTheSlack(t *testing.T) {
	t.Parallel()
	m := contending(t, wide(aPage))
	b := &m.core.budget
	m.alloc(1, 64) // all is used, and the live peak as high as it was
	m.miss(2, 4)
	m.drop(2)
	m.alloc(2, 100)
	b.extraSlack, b.boughtBytes, b.costNs = 0, 0, 0
	b.force(2 * pageBytes)
	assert.Zero(t, b.costNs)
	assert.EqualValues(t, 2*pageBytes, b.boughtBytes)
	assert.EqualValues(t, slackStep, b.extraSlack)
	b.force(0)
	assert.EqualValues(t, slackStep, b.extraSlack, "nothing was forced")
}

// One client that holds all memory has no slack to share, and a pool that buys nothing widens nothing.
func TestOnlySeveralClientsWidenTheSlack(t *testing.T) {
	t.Parallel()
	alone := openMarket(t, 1, wide(aPage))
	alone.alloc(1, 256)
	lean := contending(t, wide(0))
	for name, m := range map[string]*market{"one client": alone, "nothing is bought": lean} {
		b := &m.core.budget
		b.costNs = 1 << 50
		assert.False(t, b.widen(), name)
		b.force(pageBytes)
		assert.Zero(t, b.extraSlack, name)
	}
	alone.core.settings.Policy.SharedSlack = 512
	b := &alone.core.budget
	assert.Equal(t, b.livePeak.bytes()+b.part(b.settings.Policy.Slack), b.baseBytes(), "nobody shares its slack")
}

// Extra slack is forgotten by half in each window of time, and at once where the settings allow less.
func TestExtraSlackIsForgotten(t *testing.T) {
	t.Parallel()
	m := contending(t, wide(aPage))
	b := &m.core.budget
	b.extraSlack = slackStep
	b.roll()
	assert.EqualValues(t, slackStep/2, b.extraSlack)
	s := wide(aPage)
	s.Policy.MostSharedSlack = 1
	m.core.SetSettings(s)
	assert.EqualValues(t, 1, b.extraSlack)
	m.core.SetSettings(tight(aPage))
	assert.Zero(t, b.extraSlack)
}

// Settings that buy nothing end the purchases made under others.
func TestSettingsThatBuyNothingEndWhatWasBought(t *testing.T) {
	t.Parallel()
	m := alternating(t, aPage)
	m.core.budget.costNs = 4 * firstCreateNs
	m.miss(3, 4)
	require.NotZero(t, m.core.budget.boughtBytes)
	m.core.SetSettings(tight(aPage / 2))
	require.NotZero(t, m.core.budget.boughtBytes)
	m.core.SetSettings(tight(0))
	assert.Zero(t, m.core.budget.boughtBytes)
	assert.Equal(t, m.core.budget.livePeak.bytes(), m.core.budget.softBytes())
}

// A client that has left uses nothing, though its callers keep buffers: it asks for nothing any more. Pages that are set aside
// are needed.
func TestWhoNeedsWhat(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 2, tight(0))
	m.alloc(1, 8)
	m.alloc(2, 4)
	cs := &m.core.clients
	require.EqualValues(t, 12*pageBytes, cs.usedBytes)
	m.clients[1].left = true
	m.send(Leave{Client: 1})
	assert.EqualValues(t, 4*pageBytes, cs.usedBytes)
	m.tick()
	assert.EqualValues(t, 4*pageBytes, cs.usedBytes)
	assert.EqualValues(t, 12*pageBytes, cs.ownPeakBytes, "as long as it holds them")
	cs.roll()
	cs.roll()
	assert.EqualValues(t, 4*pageBytes, cs.ownPeakBytes)

	m.clients[3] = &holder{reserves: true}
	m.send(Join{Client: 3, Reserves: true})
	m.token++
	r := Refill{Client: 3, Token: m.token, Pages: 6, Most: 6, Bytes: 6 * pageBytes, LiveBytes: 6 * pageBytes}
	m.refills[r.Token] = r
	m.send(r)
	m.settle()
	require.Equal(t, 6, m.held(3))
	assert.EqualValues(t, 10*pageBytes, cs.ownPeakBytes)
	cs.roll()
	cs.roll()
	assert.EqualValues(t, 10*pageBytes, cs.ownPeakBytes)
}

// The costs of handles are those that the driver was seen to take, an eighth of each new one.
func TestTheBudgetLearnsWhatHandlesCost(t *testing.T) {
	t.Parallel()
	b := &New(pageBytes, 8, tight(aPage)).budget
	assert.EqualValues(t, firstCreateNs, b.worthNs(1))
	b.learn(2, 0, 16_000)
	assert.EqualValues(t, 8_000, b.worthNs(1))
	b.learn(1, 0, 16_000)
	assert.EqualValues(t, 9_000, b.worthNs(1))
	b.learn(3, 2, 3*9_000+40_000)
	assert.EqualValues(t, 20_000, b.moveNs)
	b.learn(3, 2, 1) // less than the new ones take
	assert.EqualValues(t, 17_500, b.moveNs)
	b.learn(0, 0, 1000)
	b.learn(1, 1, 0) // it is not known
	assert.EqualValues(t, 9_000, b.createNs)
	assert.EqualValues(t, 17_500, b.moveNs)
}

// The moves of a job took its time less the time for the handles that it made, and never less than nothing.
func TestTheTimeOfAMoveIsWithoutThatOfTheNewHandles(t *testing.T) {
	t.Parallel()
	for moved := 1; moved <= 4; moved++ {
		for created := range 3 {
			for _, ns := range []int64{-5000, -1, 0, 1, 7, 5000} { // of all moves
				b := &New(pageBytes, 8, tight(aPage)).budget
				b.learn(created, moved, int64(created)*firstCreateNs+ns)
				want := max(0, ns) / int64(moved)
				assert.Equal(t, want, b.moveNs, "%d moved, %d made, %d ns", moved, created, ns)
				assert.Zero(t, b.createNs)
			}
		}
	}
}

// A client lacks as many whole pages as its peak of bytes does not fit in those that it holds.
func TestWhatAClientLacksIsCountedInWholePages(t *testing.T) {
	t.Parallel()
	for pages := range int64(4) {
		for _, more := range []int64{-1, 0, 1} {
			for held := range uint64(5) {
				cl := &client{heldPages: held, ownPeak: peakOf(max(0, pages*pageBytes+more))}
				lacks := cl.lackedPages(pageBytes)
				assert.GreaterOrEqual(t, int64(uint64(lacks)+held)*pageBytes, cl.ownPeak.bytes())
				if lacks > 0 {
					assert.Less(t, int64(uint64(lacks)+held-1)*pageBytes, cl.ownPeak.bytes())
				}
			}
		}
	}
}

// Peaks last for the rest of their window of time and the one after it. Memory in use at the end of a window counts in the
// next, as far as the peak had it: freed memory that was not collected raises no peak.
func TestPeaksAreForgottenByWindows(t *testing.T) {
	t.Parallel()
	s := tight(aPage)
	s.AgeTicks = 3
	m := openMarket(t, 2, s)
	m.alloc(1, 16)
	m.alloc(2, 4)
	m.drop(1)
	peak := func() int64 { return m.core.budget.livePeak.bytes() / pageBytes }
	window := func() {
		for range s.AgeTicks {
			m.tick()
		}
	}
	assert.EqualValues(t, 20, peak())
	for range s.AgeTicks - 1 {
		m.tick()
	}
	m.tick()
	assert.EqualValues(t, 20, peak(), "the window before")
	assert.EqualValues(t, 20, m.core.clients.ownPeakBytes/pageBytes)
	window()
	assert.EqualValues(t, 4, peak())
	assert.EqualValues(t, 4, m.core.clients.ownPeakBytes/pageBytes)

	p := peakOf(10)
	p.roll(30)
	assert.EqualValues(t, 10, p.bytes(), "no client was looked at")
	p.roll(7)
	p.roll(7)
	assert.EqualValues(t, 7, p.bytes())
}

func peakOf(bytes int64) (p peak) {
	p.note(bytes)
	return p
}

// A window ends although requests are active at each of its ticks.
func TestWindowsEndInABusyPool(t *testing.T) {
	t.Parallel()
	s := tight(aPage)
	s.AgeTicks = 2
	m := openMarket(t, 2, s)
	m.alloc(1, 16)
	m.drop(1)
	m.token++
	m.await("trim")
	m.send(Trim{Token: m.token}) // awaits answers
	for range 2 * s.AgeTicks {
		m.publish()
		m.send(Tick{})
	}
	assert.Zero(t, m.core.budget.livePeak.bytes())
}

// Without an age nothing is ever forgotten.
func TestPeaksStayWithoutAnAge(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 1, tight(aPage))
	m.alloc(1, 16)
	m.drop(1)
	for range 100 {
		m.tick()
	}
	assert.EqualValues(t, 16*pageBytes, m.core.budget.livePeak.bytes())
}

// At the end of a window half of the cost expires, and purchases last as far as they are reserved.
func TestCostsAreForgottenByWindows(t *testing.T) {
	t.Parallel()
	m := alternating(t, aPage)
	b := &m.core.budget
	b.costNs = 4*firstCreateNs + 1000
	m.miss(3, 4)
	require.EqualValues(t, 1000, b.costNs)
	b.roll()
	assert.EqualValues(t, 500, b.costNs)
	assert.EqualValues(t, 4*pageBytes, b.boughtBytes)
	b.livePeak = peakOf(m.core.ReservedBytes() - pageBytes)
	b.roll()
	assert.EqualValues(t, pageBytes, b.boughtBytes)
}

// The live peak is raised by the usage of clients after they have looked: freed memory that they have not collected does not
// count.
func TestTheLivePeakRisesAfterALook(t *testing.T) {
	t.Parallel()
	m := openMarket(t, 2, tight(0))
	m.alloc(1, 16)
	m.publish()
	m.candid = false
	for i := range uint32(16) {
		m.inUse[i] = false
	}
	m.clients[1].free.stale = true // it has published sixteen pages in use
	m.token++
	r := Refill{Client: 2, Token: m.token, Pages: 12, Bytes: 12 * pageBytes, LiveBytes: 12 * pageBytes}
	m.wanted, m.refills[r.Token] = r, r
	m.send(r)
	require.Equal(t, 1, m.looks)
	assert.EqualValues(t, 16*pageBytes, m.core.budget.livePeak.bytes())
	m.publish()
	m.endLooks()
	m.settle()
	assert.EqualValues(t, 16*pageBytes, m.core.budget.livePeak.bytes())
	assert.EqualValues(t, 16*pageBytes, m.core.ReservedBytes())
	assert.Empty(t, m.refills)
}

// A request that fits once the slack has widened asks nobody, also where another client has as much as it wants.
func TestAWiderSlackServesBeforeOthersAreAsked(t *testing.T) {
	t.Parallel()
	for name, costNs := range map[string]int64{"it widens": 1 << 40, "it does not": 0} {
		m := contending(t, wide(aPage))
		m.drop(2)
		m.core.budget.costNs = costNs
		m.miss(3, 8)
		assert.Equal(t, costNs == 0, m.moved.asks > 0, name)
	}
}

// The time that a job took to fill a window is learned, and so the price of growth follows the driver.
func TestTheTimeOfAJobIsLearned(t *testing.T) {
	t.Parallel()
	w := settled(t, 1)
	w.want(1, 8)
	w.give(1, 0)
	j := w.job
	require.Equal(t, 2, j.Created())
	for i := range j.Ops {
		j.Ops[i].Handle = cudadrv.Handle(1 + i)
	}
	w.core.Step(JobDone{Job: j, Done: len(j.Ops), TookNs: 10_000})
	assert.EqualValues(t, 5_000, w.core.budget.createNs)
}
