package core

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/admission"
)

// A request that waits again is among those that wait, and its wait is counted once.
func TestAWaitIsCountedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 64, 8, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 8 * pageBytes})
	w.clients[1] = &holder{}
	w.send(Join{Client: 1})
	w.fill(1, 8)
	for i := range uint64(6) {
		age := 1 + i/3
		w.core.Step(Refill{
			Client: 1, Token: 99 + i, Pages: 4, Bytes: 4 * pageBytes, LiveBytes: 8 * pageBytes, Patience: Waiting,
			Place: Place{Account: 1, Age: age, Align: 1, Again: i%3 > 0},
		})
		n := w.core.WaitCounts()
		assert.Equal(t, 1, n.Waiting)
		assert.Equal(t, age, n.Count)
		w.core.Step(Withdraw{Client: 1, Token: 99 + i})
	}
	assert.Zero(t, w.core.WaitCounts().Waiting)
}

// A trial that memory overtook is no reason to leave out the next one.
func TestATrialThatWasOvertakenIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 64, 8, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 8 * pageBytes})
	w.clients[1] = &holder{}
	w.send(Join{Client: 1})
	w.fill(1, 8)
	c := w.core
	fx := c.Step(Refill{
		Client: 1, Token: 99, Pages: 4, Bytes: 4 * pageBytes, LiveBytes: 8 * pageBytes, Patience: Waiting,
		Place: Place{Account: 1, Age: 1, Align: 1},
	})
	overtaken := false
	for range 32 {
		switch {
		case len(effect.Left(&fx.Offers)) > 0 && overtaken:
			return
		case len(effect.Left(&fx.Offers)) > 0:
			fx = c.Step(Offered{Client: 1, Token: 99})
		case len(effect.Left(&fx.Asks)) > 0 && !overtaken:
			overtaken = true
			c.Step(Return{Client: 1, LiveBytes: 4 * pageBytes, Stirred: true}) // its cache serves the request now
			fx = c.Step(Return{Client: 1, LiveBytes: 4 * pageBytes, Answer: true})
		case fx.Job != nil:
			fx = c.Step(JobDone{Job: fx.Job, Done: len(fx.Job.Ops)})
		default:
			require.FailNow(t, "it is not tried again", "overtaken: %v, %+v", overtaken, fx)
		}
	}
	require.FailNow(t, "no trial ends")
}

// shop is a core whose clients answer at once, with all that they have on the shelf.
type shop struct {
	core   *Core
	shelf  map[Client][]Run
	served map[uint64]bool  // by token
	mapped []uint64         // tokens of requests for which the driver mapped pages
	denied map[uint64]error // likewise
	ends   []End
	asked  []Client

	passed []Passed                                    // what each job reports
	jobs   int                                         // so many were performed
	fails  func(job int, j *Job) (done int, err error) // how a job ends; nil: it succeeds
}

// openShop returns a world with three clients, of which the first holds all eight pages.
func openShop(t *testing.T) *shop {
	t.Helper()
	w := newWorld(t, 64, 8, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 8 * pageBytes})
	for id := Client(1); id <= 3; id++ {
		w.clients[id] = &holder{}
		w.send(Join{Client: id})
	}
	w.fill(1, 8)
	return &shop{core: w.core, shelf: map[Client][]Run{}, served: map[uint64]bool{}, denied: map[uint64]error{}}
}

// do takes a message, and all that follows from it.
func (s *shop) do(m Message) {
	for next := []Message{m}; len(next) > 0; {
		fx := s.core.Step(next[0])
		next = next[1:]
		for _, g := range effect.Left(&fx.Grants) {
			s.shelf[g.Client] = append(s.shelf[g.Client], append(g.More, g.Run)...)
			s.served[g.Token] = true
			if g.Mapped {
				s.mapped = append(s.mapped, g.Token)
			}
		}
		for _, d := range effect.Left(&fx.Denials) {
			s.denied[d.Token] = d.Err
		}
		s.ends = append(s.ends, effect.Left(&fx.Ends)...)
		for _, o := range effect.Left(&fx.Offers) {
			next = append(next, Offered{Client: o.Client, Token: o.Token})
		}
		for _, a := range effect.Left(&fx.Asks) {
			s.asked = append(s.asked, a.Client)
			runs := s.shelf[a.Client]
			next = append(next, Return{Client: a.Client, Runs: runs, Sent: uint64(len(runs)), Answer: true})
			s.shelf[a.Client] = nil
		}
		if fx.Job != nil {
			next = append(next, s.perform(fx.Job))
		}
	}
}

// perform returns how a job ends.
func (s *shop) perform(j *Job) JobDone {
	m := JobDone{Job: j, Done: len(j.Ops), Passed: s.passed}
	for _, id := range j.Watch {
		m.Watched = append(m.Watched, Watch{Client: id, Number: uint64(id)})
	}
	if s.fails != nil {
		m.Done, m.Err = s.fails(s.jobs, j)
	}
	s.jobs++
	return m
}

func waitAs(token uint64, pages uint32) Refill { return waitOf(2, token, pages) }

func waitOf(id Client, token uint64, pages uint32) Refill {
	return Refill{
		Client: id, Token: token, Pages: pages, Bytes: int64(pages) * pageBytes, Patience: Waiting,
		Place: Place{Account: admission.Account(id), Age: token, Align: 1},
	}
}

// The runs of a request that is refused in the end stay with its client, which is asked for them.
func TestWhatWasRefusedInTheEndServesOthers(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.do(waitAs(99, 3))
	s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 2}}, Sent: 1, Stirred: true})
	s.do(Refill{Client: 3, Token: 98, Pages: 2, More: []uint32{4}, Bytes: 6 * pageBytes})
	require.NotEmpty(t, s.shelf[3], "it has got a part")
	require.False(t, s.served[99])
	s.do(Return{Client: 1, Runs: []Run{{First: 2, Pages: 1}}, Sent: 2, Stirred: true})
	require.True(t, s.served[99])
}

// While no request waits clients do not report freed memory: a failed attempt from before is repeated.
func TestAVainTrialIsForgottenWithTheLastThatWaits(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.do(waitAs(98, 4))
	s.do(Withdraw{Client: 2, Token: 98})
	s.shelf[1] = []Run{{First: 0, Pages: 4}}
	s.do(waitAs(99, 4))
	require.True(t, s.served[99])
}

// The requests of a client that leaves are refused, those that wait too: nobody is there for their memory. Those of others wait
// on, and get it.
func TestAClientThatLeavesWaitsForNothing(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for _, r := range []Refill{waitAs(96, 3), waitOf(3, 97, 4), waitAs(98, 2)} {
		s.do(r)
	}
	require.Empty(t, s.denied)
	s.do(Leave{Client: 2, Synced: true})
	assert.Equal(t, map[uint64]error{96: ErrClosed, 98: ErrClosed}, s.denied)
	assert.Equal(t, 1, s.core.waiters.count())
	require.NoError(t, s.core.Check())
	s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 4}}, Sent: 1, Stirred: true})
	assert.Equal(t, map[uint64]bool{97: true}, s.served)
	require.NoError(t, s.core.Check())
}

// A client gets back what it returned before it is offered its own request: it serves the request from all that it may use.
func TestAnOfferComesWithWhatTheClientReturned(t *testing.T) {
	t.Parallel()
	tr := openTrial(t, 4)
	fx := tr.core.Step(tr.back(2, false, []Run{{First: 6, Pages: 2}}))
	assert.Equal(t, []Grant{{Client: 2, Run: Run{First: 6, Pages: 2}}}, effect.Left(&fx.Grants))
	assert.Equal(t, []Offer{{Client: 2, Token: 99}}, effect.Left(&fx.Offers))
	fx = tr.core.Step(Offered{Client: 2, Token: 99, Taken: true})
	assert.Empty(t, effect.Left(&fx.Asks))
	assert.Zero(t, tr.core.waiters.count())
	require.NoError(t, tr.core.Check())
}

// A client that has returned all that it can is asked for nothing more on behalf of those that wait before it reports freed memory.
func TestNobodyIsAskedTwiceForThoseThatWait(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.do(waitAs(99, 4))
	for token := range uint64(4) {
		s.asked = nil
		s.do(waitOf(3, token+1, uint32(4-token))) //nolint:gosec // small
		assert.Empty(t, s.asked, "nothing has changed")
	}
	s.do(Return{Client: 1, Stirred: true, Sent: 1})
	assert.Equal(t, []Client{1}, slices.Compact(slices.Sorted(slices.Values(s.asked))), "it has freed something")
}

// A trim asks for memory if more is reserved than it keeps, and else nobody.
func TestATrimAsksForWhatItIsToRelease(t *testing.T) {
	t.Parallel()
	for keepPages, asks := range map[int64]bool{7: true, 8: false, 9: false} {
		s := openShop(t)
		s.do(Trim{Token: 50, KeepBytes: keepPages * pageBytes})
		assert.Equal(t, asks, len(s.asked) > 0, "keeps %d of 8 pages", keepPages)
		assert.Len(t, s.ends, 1)
	}
}

// A pool that closes, or is abandoned, answers the requests that wait.
func TestNoRequestWaitsForAClosedPool(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.do(waitAs(98, 4))
	s.do(waitOf(3, 99, 4))
	s.do(Close{Token: 7})
	assert.Equal(t, map[uint64]error{98: ErrClosed, 99: ErrClosed}, s.denied)
	assert.Zero(t, s.core.waiters.count())

	s = openShop(t)
	s.do(waitAs(99, 4))
	denials := effect.Left(&s.core.Abandon(errBroken).Denials)
	require.Len(t, denials, 1)
	assert.EqualValues(t, 99, denials[0].Token)
	require.ErrorIs(t, denials[0].Err, errBroken)
	assert.Zero(t, s.core.waiters.count())
}

// Before a deadlock is declared all clients answer an ask that is younger than the last change: answers on their way are awaited,
// and then all are asked.
func TestAnswersOnTheirWayAreTooOldForADeadlock(t *testing.T) {
	t.Parallel()
	for asked := Client(1); asked <= 2; asked++ {
		w := settled(t, 2)
		w.fill(1, 4)
		w.fill(2, 4)
		c := w.core
		c.fx.reset()
		c.asks.ask(&request{}, c.clients.all[asked], 0)
		c.scheduler.noProgress.gather()
		c.scheduler.advance()
		require.Equal(t, []Ask{{Client: asked}}, effect.Left(&c.fx.Asks), "the one from before")
		fx := c.Step(Return{Client: asked, Answer: true, LiveBytes: 4 * pageBytes})
		require.Equal(t, []Ask{{Client: 1}, {Client: 2}}, effect.Left(&fx.Asks))
		c.Step(Return{Client: 1, Answer: true, LiveBytes: 4 * pageBytes})
		c.Step(Return{Client: 2, Answer: true, LiveBytes: 4 * pageBytes, PendingBytes: 1})
		require.True(t, c.waiters.unsettled, "a byte is on its way")
	}
}

// Events that may bring memory have requests that wait for frees, or for a fence, tried again at once: without a Tick.
func TestWhatMayBringMemoryIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	for name, brings := range map[string]func(s *shop){
		"a higher limit": func(s *shop) {
			settings := s.core.settings
			settings.LimitBytes = 16 * pageBytes
			s.core.SetSettings(settings)
			s.do(Looked{})
		},
		"a fence that passes": func(s *shop) {
			s.passed = []Passed{{Client: 1, Fence: 7}}
			s.do(WatchOver{Watch: Watch{Client: 1, Number: 1}})
		},
		"a released reservation": func(s *shop) { s.do(Unreserve{Client: 4}) },
		"a return":               func(s *shop) { s.do(Return{Client: 3, Runs: []Run{{First: 0, Pages: 1}}, Sent: 1}) },
	} {
		for _, patience := range []Patience{Impatient, Waiting} {
			if name == "a higher limit" && patience == Impatient { // it waits for a fence then, and the driver goroutine for nothing
				continue
			}
			s := openShop(t)
			s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 5}}, Sent: 1, Final: true})
			s.do(Refill{Client: 3, Token: 1, Pages: 1, Most: 1, Bytes: pageBytes})
			s.do(Join{Client: 4, Reserves: true})
			s.do(Refill{Client: 4, Token: 2, Pages: 4, Most: 4, Bytes: 4 * pageBytes})
			s.do(Return{Client: 1, Runs: []Run{{First: 5, Pages: 1}}, Sent: 2, Fence: 7})
			r := waitOf(2, 9, 1)
			r.Patience = patience
			s.shelf = map[Client][]Run{}
			s.do(r)
			require.False(t, s.served[9], name)
			require.NotContains(t, s.denied, uint64(9), name)
			brings(s)
			assert.True(t, s.served[9], "%s, %v", name, patience)
			require.NoError(t, s.core.Check())
		}
	}
}

// A request that names a reservation is served from it before those that wait, which it may not pass.
func TestAReservationServesBeforeThoseThatWait(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 4}}, Sent: 1, Final: true})
	s.do(Join{Client: 4, Reserves: true})
	s.do(Refill{Client: 4, Token: 1, Pages: 4, Most: 4, Bytes: 4 * pageBytes})
	s.do(waitOf(2, 8, 1))
	for token, from := range map[uint64]Client{9: 0, 10: 4} {
		r := waitOf(3, token, 3)
		r.Patience, r.From = Patient, from
		s.do(r)
	}
	assert.False(t, s.served[8])
	assert.Contains(t, s.denied, uint64(9))
	assert.True(t, s.served[10])
	assert.NotContains(t, s.mapped, uint64(10), "it had its pages before")
}

// A deadlock has the bytes of blocked requests alone, and names the refused request and so many others.
func TestWhatADeadlockNames(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for i := range uint64(4) {
		r := waitOf(2, 10+i, uint32(i+1)) //nolint:gosec // a few
		r.Place.Blocked = i%2 == 0
		s.do(r)
	}
	n := &s.core.scheduler.noProgress
	named := func(refused uint64, most int) (tokens []uint64) {
		d := n.deadlock([]admission.Account{1, 2}, refused, most)
		assert.Equal(t, []Holder{{Account: 1}, {Account: 2, WaitingBytes: 4 * pageBytes}}, d.Holders, "1 and 3 pages")
		for _, w := range d.Waiters {
			tokens = append(tokens, s.core.waiters.parked[w.ID].token)
			assert.Equal(t, Client(2), d.Clients[w.ID])
		}
		assert.Len(t, d.Clients, len(d.Waiters))
		return tokens
	}
	last := s.core.waiters.find(2, 13).id
	assert.Equal(t, []uint64{13}, named(last, 0))
	assert.Equal(t, []uint64{10, 13}, named(last, 1))
	assert.Equal(t, []uint64{10, 11, 12, 13}, named(last, maxNamed))
	assert.Equal(t, []uint64{10, 11}, named(0, 2))
}

// A suspended holder makes no progress, unless goroutines without a client free memory of it; clients that are gone free none.
func TestWhoFreesTheMemoryOfASuspendedClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by     []Client
		denied bool
	}{
		"nobody else":                {nil, true},
		"a client that is gone":      {[]Client{9}, true},
		"a client that waits":        {[]Client{2}, true},
		"a client":                   {[]Client{3}, false},
		"goroutines without clients": {[]Client{Anybody}, false},
	} {
		s := openShop(t)
		s.do(Suspend{Client: 1, Number: 1, Waits: [][]Client{{2}}, FreedBy: c.by})
		r := waitOf(2, 5, 1)
		r.Place.Blocked = true
		s.do(r)
		_, denied := s.denied[5]
		assert.Equal(t, c.denied, denied, name)
	}
}

// Below a lowered limit no memory goes back: clients are asked for memory that they do not use, and the pool keeps as much as it may.
func TestALoweredLimitIsKeptAndNoMore(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	settings := s.core.settings
	settings.LimitBytes = 5 * pageBytes
	s.core.SetSettings(settings)
	s.shelf[1] = []Run{{First: 3, Pages: 5}}
	s.do(Tick{})
	assert.Equal(t, []Client{1}, s.asked)
	assert.EqualValues(t, 5*pageBytes, s.core.ReservedBytes())
	s.asked = nil
	s.do(Tick{})
	assert.Empty(t, s.asked)
}
