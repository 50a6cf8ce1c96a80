package core

import (
	"testing"

	"github.com/go-vram/vram/internal/effect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// ledger is a budget by its rules alone, of clients of which several hold memory or not.
type ledger struct {
	Policy
	limit, reserved, ownPeaks int64
	several                   bool

	before, now, steady, bought, extra, cost int64
}

func (l *ledger) peak() int64 { return max(l.before, l.now) }

func (l *ledger) part(share int64) int64 { return l.peak() / 1024 * share }

func (l *ledger) base() int64 {
	slack := l.Slack
	if l.several {
		slack = max(slack, l.SharedSlack+l.extra)
	}
	return l.peak() + l.part(slack) + l.SpareBytes + l.steady
}

func (l *ledger) soft() int64 { return min(l.limit, l.base()+l.bought) }

// price returns the price of bytes where so much is reserved with them.
func (l *ledger) price(bytes, reserved int64) int64 {
	pages := (bytes + pageBytes - 1) / pageBytes
	if reserved > l.ownPeaks+l.ownPeaks/8 {
		pages *= 4
	}
	return pages * l.PageWorth * firstCreateNs / worthUnit
}

func (l *ledger) step() int64 {
	if l.PageWorth == 0 || !l.several {
		return 0
	}
	return min(slackStep, max(0, l.MostSharedSlack-l.SharedSlack-l.extra))
}

func (l *ledger) raise(live int64) {
	rise := live - l.peak()
	l.now = max(l.now, live)
	if rise > 0 {
		refund := min(rise, l.bought)
		l.steady, l.bought = 0, l.bought-refund
		l.cost += refund / pageBytes * l.PageWorth * firstCreateNs / worthUnit
	}
}

func (l *ledger) force(bytes int64) {
	if bytes > 0 && l.PageWorth > 0 {
		l.extra, l.bought = l.extra+l.step(), l.bought+bytes
	}
}

func (l *ledger) affords(bytes, reserved int64) bool {
	return bytes <= 0 || l.PageWorth > 0 && l.cost >= l.price(bytes, reserved)
}

func (l *ledger) buy(bytes, reserved int64) {
	if bytes > 0 && l.PageWorth > 0 {
		l.cost, l.bought = l.cost-l.price(bytes, reserved), l.bought+bytes
	}
}

// The budget follows its rules in any history, to the byte and to the nanosecond.
func TestTheBudgetFollowsItsRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.SampledFrom([]int64{0, 1, 40, 300})
		p := Policy{
			HandlePages: 4, SpareBytes: number.Draw(t, "spare") * 1000, Slack: number.Draw(t, "slack"), SharedSlack: number.Draw(t, "shared"),
			SteadySlack: number.Draw(t, "steady"), PageWorth: rapid.SampledFrom([]int64{0, 1, 8, 9}).Draw(t, "worth"),
		}
		p.MostSharedSlack = p.SharedSlack + number.Draw(t, "most")
		w := newWorld(t, 64, 64, Settings{Policy: p, LimitBytes: rapid.Int64Range(8, 40).Draw(t, "limit")*pageBytes + number.Draw(t, "bytes")})
		w.clients[1] = &holder{}
		w.send(Join{Client: 1})
		w.fill(1, 8)
		b, cs := &w.core.budget, &w.core.clients
		cs.holding = rapid.IntRange(1, 2).Draw(t, "holding")
		cs.ownPeakBytes = rapid.Int64Range(0, 9).Draw(t, "own") * pageBytes
		l := &ledger{
			Policy: p, limit: w.settings.LimitBytes, reserved: 8 * pageBytes, ownPeaks: cs.ownPeakBytes, several: cs.holding > 1,
			before: b.livePeak.before, now: b.livePeak.now, steady: b.steadyBytes, bought: b.boughtBytes, extra: b.extraSlack, cost: b.costNs,
		}
		bytes := rapid.SampledFrom([]int64{-pageBytes, -1, 0, 1, 2, pageBytes - 1, pageBytes, pageBytes + 1, 3 * pageBytes, 9 * pageBytes})
		r := &request{client: 1}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				want := [...]int64{l.peak(), l.steady, l.bought, l.extra, l.cost, l.base(), l.soft(), l.step()}
				require.Equal(t, want, [...]int64{b.livePeak.bytes(), b.steadyBytes, b.boughtBytes, b.extraSlack, b.costNs, b.baseBytes(), b.softBytes(), b.nextStep()})
			},
			"raise": func(t *rapid.T) {
				live := max(0, l.peak()+bytes.Draw(t, "more"))
				rises := live > l.peak()
				require.Equal(t, rises, b.raise(live))
				l.raise(live)
			},
			"asked": func(t *rapid.T) {
				runs, took := rapid.IntRange(0, 3).Draw(t, "runs"), rapid.Int64Range(0, 200_000).Draw(t, "took")
				least := int64(askNs + runs*runNs)
				b.asked(runs, took)
				l.cost += max(least, min(took, 8*least))
			},
			"recycled": func(t *rapid.T) {
				n := max(0, bytes.Draw(t, "bytes"))
				b.recycled(2, n)
				l.cost += 2 * firstMoveNs
				l.steady = max(l.steady, min(l.part(l.SteadySlack), l.steady+n))
			},
			"force": func(t *rapid.T) {
				n := bytes.Draw(t, "bytes")
				b.force(n)
				l.force(n)
			},
			"exceed": func(t *rapid.T) {
				n, reserved := bytes.Draw(t, "bytes"), l.reserved+bytes.Draw(t, "reserved")
				require.Equal(t, l.affords(n, reserved), b.affords(n, reserved))
				b.exceed(n, reserved)
				if l.step() == 0 && l.affords(n, reserved) {
					l.buy(n, reserved)
				} else {
					l.force(n)
				}
			},
			"buys": func(t *rapid.T) {
				pages := rapid.Uint32Range(0, 40).Draw(t, "pages")
				r.capped = rapid.IntRange(0, 5).Draw(t, "capped") == 0
				reserved := l.reserved + int64(pages)*pageBytes
				beyond := reserved - l.soft()
				want := !r.capped && reserved <= l.limit && l.affords(beyond, reserved)
				require.Equal(t, want, b.buys(r, pages))
				if want {
					l.buy(beyond, reserved)
				}
			},
			"widen": func(t *rapid.T) {
				step := l.step()
				price := l.part(step) / pageBytes * l.PageWorth * firstCreateNs / worthUnit
				want := step > 0 && l.cost >= price
				require.Equal(t, want, b.widen())
				if want {
					l.cost, l.extra = l.cost-price, l.extra+step
				}
			},
			"roll": func(*rapid.T) {
				b.livePeak.now = l.now
				b.roll()
				used := cs.usedBytes
				l.before, l.now = l.now, min(used, l.peak())
				l.extra /= 2
				l.bought = min(l.bought, max(0, l.reserved-l.base()))
				l.cost /= 2
				cs.holding, cs.ownPeakBytes = map[bool]int{false: 1, true: 2}[l.several], l.ownPeaks // which it does not have from clients
			},
		})
	})
}

// A request needs others exactly if it does not wait, there are others, and the soft budget has no room for its pages.
func TestWhichRequestsNeedOthers(t *testing.T) {
	t.Parallel()
	for clients := Client(1); clients <= 3; clients++ {
		w := settled(t, clients)
		w.fill(1, 8)
		b := &w.core.budget
		free := uint32((b.softBytes() - w.core.ReservedBytes()) / pageBytes)
		for _, waits := range []bool{false, true} {
			for _, pages := range []uint32{1, free, free + 1} {
				r := &request{client: 1, wish: wish{pages: pages}}
				if waits {
					r.id = 1
				}
				assert.Equal(t, !waits && clients > 1 && pages > free, w.core.scheduler.ladder.asks.needsOthers(r),
					"%d clients, waits: %t, %d pages of %d", clients, waits, pages, free)
			}
		}
	}
}

// A client that has returned a surplus, or memory since it is idle, is lent little for twice the age of old memory.
func TestHowLongAClientIsLentLittle(t *testing.T) {
	t.Parallel()
	runs := []Run{{First: 0, Pages: 2}}
	for name, c := range map[string]struct {
		m              Return
		thrift, waking bool
	}{
		"a surplus":               {Return{Client: 1, Runs: runs, Surplus: true}, true, false},
		"a surplus of nothing":    {Return{Client: 1, Surplus: true}, true, false},
		"an idle client's memory": {Return{Client: 1, Runs: runs, Final: true}, false, true},
		"nothing of an idle one":  {Return{Client: 1, Final: true}, false, false},
		"an answer":               {Return{Client: 1, Runs: runs, Answer: true}, false, false},
	} {
		for _, age := range []uint32{0, 1, 3} {
			s := openShop(t)
			settings := s.core.settings
			settings.AgeTicks = age
			s.core.SetSettings(settings)
			c.m.Sent = uint64(len(c.m.Runs))
			s.core.Step(c.m)
			cl := s.core.clients.all[1]
			for tick := range 2*age + 1 {
				assert.Equal(t, c.thrift && tick < 2*age, cl.thriftTicks > 0, "%s, tick %d of age %d", name, tick, age)
				assert.Equal(t, c.waking && tick < 2*age, cl.wakingTicks > 0, "%s, tick %d of age %d", name, tick, age)
				s.core.clients.tick()
			}
		}
	}
}

// A charge, a wake and a request of a client that is apart get the memory that other clients have on their shelves, where the
// limit leaves no other.
func TestSpecialsTakeWhatOthersDoNotUse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message Message
		served  func(s *shop) bool
	}{
		"charge": {Charge(2, 3*pageBytes, 77), nil},
		"wake":   {Wake(4, 77), nil},
		"apart":  {Refill{Client: 4, Token: 6, Pages: 3, Bytes: 3 * pageBytes}, func(s *shop) bool { return s.served[6] }},
	} {
		s := openShop(t)
		s.shelf[1] = []Run{{First: 0, Pages: 2}}
		s.do(Join{Client: 4})
		s.do(Apart(4))
		s.do(Refill{Client: 4, Token: 5, Pages: 2, Bytes: 2 * pageBytes})
		require.True(t, s.served[5], name)
		s.shelf[4] = nil
		if name == "wake" {
			s.do(Sleep(4, 1))
			s.do(Refill{Client: 2, Token: 7, Pages: 2, Bytes: 2 * pageBytes}) // has what it had
			require.True(t, s.served[7], name)
			s.shelf[2] = nil
		}
		s.shelf[1] = []Run{{First: 2, Pages: 3}}
		s.ends, s.asked = nil, nil
		s.do(c.message)
		if c.served != nil {
			assert.True(t, c.served(s), name)
		} else {
			require.Len(t, s.ends, 1, name)
			assert.NoError(t, s.ends[0].Err, name)
		}
		assert.Contains(t, s.asked, Client(1), name)
		require.NoError(t, s.core.Check())
	}
}

// A request that is withdrawn while it is tried takes no further step and leaves nothing: a later answer serves the next one.
func TestARequestIsWithdrawnAtAnyStage(t *testing.T) {
	t.Parallel()
	for stage := range 4 {
		s := openShop(t)
		fx := s.core.Step(waitAs(99, 4))
		asked := false
		for range stage {
			switch {
			case len(effect.Left(&fx.Offers)) > 0:
				fx = s.core.Step(Offered{Client: 2, Token: 99})
			case len(effect.Left(&fx.Asks)) > 0:
				asked = true
				fx = s.core.Step(Return{Client: 1, Answer: true})
			case fx.Job != nil:
				fx = s.core.Step(JobDone{Job: fx.Job, Done: len(fx.Job.Ops)})
			}
		}
		owed := len(effect.Left(&fx.Asks)) > 0
		fx = s.core.Step(Withdraw{Client: 2, Token: 99})
		require.NoError(t, s.core.Check())
		assert.Empty(t, effect.Left(&fx.Asks), "stage %d", stage)
		assert.Empty(t, effect.Left(&fx.Offers), "stage %d", stage)
		assert.Zero(t, s.core.unanswered(), "stage %d", stage)
		assert.True(t, s.core.queue.empty(), "stage %d", stage)
		s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 4}}, Answer: owed, Sent: 1})
		s.do(Refill{Client: 3, Token: 98, Pages: 4, Bytes: 4 * pageBytes})
		assert.True(t, s.served[98])
		assert.False(t, s.served[99])
		assert.Equal(t, stage > 0, asked || owed, "stage %d", stage)
	}
}

// The progress of a warm-up is what it has mapped of all its runs.
func TestTheProgressOfAWarmUp(t *testing.T) {
	t.Parallel()
	w := settled(t, 1)
	w.token++
	w.await("warm")
	w.send(Warm{Token: w.token, Runs: []uint32{4, 2, 3}})
	var progress [][2]int64
	for w.job != nil {
		j := w.job
		w.perform(-1, nil)
		mapped, wanted := w.core.Warmed(j)
		progress = append(progress, [2]int64{mapped / pageBytes, wanted / pageBytes})
	}
	assert.Equal(t, [][2]int64{{4, 9}, {6, 9}, {9, 9}}, progress)
	mapped, wanted := w.core.Warmed(&Job{})
	assert.Zero(t, mapped+wanted)
}
