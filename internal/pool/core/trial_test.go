package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/memory"
)

// trial is a core that tries a request of the second client's. Its clients answer at once, with all that they have on the
// shelf, under a fence that never passes.
type trial struct {
	core  *Core
	shelf map[Client][]Run
	fence Fence // of the next return
}

// openTrial returns a world in which the first client holds six pages and the second two, and wants more than can be found.
func openTrial(t *testing.T, pages uint32, more ...uint32) *trial {
	t.Helper()
	w := newWorld(t, 64, 8, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 8 * pageBytes})
	w.candid = true
	for id := Client(1); id <= 3; id++ {
		w.clients[id] = &holder{}
		w.send(Join{Client: id})
	}
	w.fill(1, 6)
	w.fill(2, 2)
	tr := &trial{core: w.core, shelf: map[Client][]Run{}, fence: 1}
	want := waitAs(99, pages)
	want.More = more
	tr.do(t, want)
	return tr
}

// free returns pages, for good.
func (tr *trial) free(t *testing.T, id Client, runs ...Run) {
	t.Helper()
	tr.do(t, tr.back(id, false, runs))
}

// back returns a return under the next fence.
func (tr *trial) back(id Client, answer bool, runs []Run) Return {
	tr.fence++
	return Return{Client: id, Runs: runs, Fence: tr.fence, Sent: uint64(len(runs)), Answer: answer, Stirred: !answer}
}

// do takes a message, and all that follows from it. The books balance after each step.
func (tr *trial) do(t *testing.T, m Message) {
	t.Helper()
	for next := []Message{m}; len(next) > 0; {
		fx := tr.core.Step(next[0])
		require.NoError(t, tr.core.Check())
		next = next[1:]
		for _, g := range effect.Left(&fx.Grants) {
			require.Zero(t, g.Token, "it is served")
			tr.shelf[g.Client] = append(tr.shelf[g.Client], append(g.More, g.Run)...)
		}
		for _, o := range effect.Left(&fx.Offers) {
			next = append(next, Offered{Client: o.Client, Token: o.Token})
		}
		for _, a := range effect.Left(&fx.Asks) {
			next = append(next, tr.back(a.Client, true, tr.shelf[a.Client]))
			tr.shelf[a.Client] = nil
		}
		if fx.Job != nil {
			next = append(next, JobDone{Job: fx.Job, Done: len(fx.Job.Ops)})
		}
	}
}

// owners returns the clients whose work may still be at the free pages, by page; 0 for none.
func (tr *trial) owners() map[uint32]Client {
	owners := map[uint32]Client{}
	tr.core.eachFree(func(run Run, tag memory.Tag) {
		for at := run.First; at < run.End(); at++ {
			owners[at] = tag.Client
		}
	})
	return owners
}

// A failed trial for several runs puts back the runs that it got under their tags: no other client is granted pages that their
// client's work may still use.
func TestATrialGivesBackWhatItGotAsItWas(t *testing.T) {
	t.Parallel()
	tr := openTrial(t, 2, 4)
	tr.free(t, 2, Run{First: 6, Pages: 2})
	assert.Equal(t, map[uint32]Client{6: 2, 7: 2}, tr.owners())
	tr.free(t, 1, Run{First: 0, Pages: 2})
	assert.Equal(t, map[uint32]Client{0: 1, 1: 1, 6: 2, 7: 2}, tr.owners())
}

// So does a window that was put together of runs with different tags.
func TestATrialGivesBackAWindowAsItWas(t *testing.T) {
	t.Parallel()
	tr := openTrial(t, 3, 4)
	tr.do(t, Return{Client: 1, Runs: []Run{{First: 5, Pages: 1}}, Sent: 1, Stirred: true}) // without a fence: clean
	tr.shelf[1] = nil
	tr.free(t, 2, Run{First: 6, Pages: 2})
	assert.Equal(t, map[uint32]Client{5: 0, 6: 2, 7: 2}, tr.owners())
}

// A fence that passes while a trial has the pages makes them clean, and an earlier one does not.
func TestAFencePassesDuringATrial(t *testing.T) {
	t.Parallel()
	for passed, owner := range map[Fence]Client{8: 2, 9: 0} {
		tr := openTrial(t, 2, 4)
		c := tr.core
		c.Step(Return{Client: 1, Runs: []Run{{First: 0, Pages: 1}}, Fence: 2, Sent: 1, Stirred: true})
		fx := c.Step(Return{Client: 2, Kept: 1, Stirred: true})
		require.Empty(t, effect.Left(&fx.Asks), "it is offered what its own stream has first")
		fx = c.Step(Offered{Client: 2, Token: 99})
		require.Equal(t, []Ask{{Client: 1}, {Client: 2}}, effect.Left(&fx.Asks))
		c.Step(Return{Client: 2, Runs: []Run{{First: 6, Pages: 2}}, Fence: 9, Sent: 2, Answer: true})
		require.Equal(t, memory.Parts{{Run: Run{First: 6, Pages: 2}, Tag: memory.Tag{Client: 2, Fence: 9}}}, c.waiters.find(2, 99).parts)
		c.passed(Passed{Client: 2, Fence: passed})
		tr.do(t, Return{Client: 1, Sent: 1, Answer: true})
		assert.Equal(t, map[uint32]Client{0: 1, 6: owner, 7: owner}, tr.owners())
	}
}

// A trial asks the driver again after a refusal in an earlier one: the driver does not report when it has memory again.
func TestATrialAsksTheDriverAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 64, 8, Settings{Policy: Policy{HandlePages: 4}, LimitBytes: 8 * pageBytes})
	w.candid = true
	for id := Client(1); id <= 2; id++ {
		w.clients[id] = &holder{}
		w.send(Join{Client: id})
	}
	w.fill(1, 4)
	c := w.core
	grows := func(m Message) (asked bool) {
		for next := []Message{m}; len(next) > 0; {
			fx := c.Step(next[0])
			next = next[1:]
			for _, o := range effect.Left(&fx.Offers) {
				next = append(next, Offered{Client: o.Client, Token: o.Token})
			}
			for _, a := range effect.Left(&fx.Asks) {
				next = append(next, Return{Client: a.Client, Answer: true})
			}
			if fx.Job == nil {
				continue
			}
			done := JobDone{Job: fx.Job}
			if len(fx.Job.Ops) > 0 {
				require.Equal(t, memory.Create, fx.Job.Ops[0].Verb)
				asked, done.Err = true, cudadrv.OutOfMemory
			}
			next = append(next, done)
		}
		require.Equal(t, 1, c.waiters.count())
		require.NoError(t, c.Check())
		return asked
	}
	require.True(t, grows(waitAs(99, 4)))
	for range 3 {
		require.True(t, grows(Tick{}))
	}
}

// A trial in vain spares those that could not do better: of the same client, as long or longer, aligned as much or more. All
// others are tried.
func TestATrialInVainSparesThoseThatAreNoEasier(t *testing.T) {
	t.Parallel()
	tried := waitAs(98, 4)
	tried.Place.Align = 8
	for name, c := range map[string]struct {
		change func(*Refill)
		spared bool
	}{
		"the same":            {func(*Refill) {}, true},
		"aligned more":        {func(r *Refill) { r.Place.Align = 16 }, true},
		"aligned less":        {func(r *Refill) { r.Place.Align = 4 }, false},
		"of more pages":       {func(r *Refill) { r.Pages = 5 }, true},
		"of fewer pages":      {func(r *Refill) { r.Pages = 3 }, false},
		"of more bytes":       {func(r *Refill) { r.Bytes++ }, true},
		"of fewer bytes":      {func(r *Refill) { r.Bytes-- }, false},
		"of another client":   {func(r *Refill) { r.Client, r.Place.Account = 3, 3 }, false},
		"of a run and a page": {func(r *Refill) { r.More = []uint32{1} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			first, next := tried, tried
			s.do(first)
			next.Token, next.Place.Age, next.Place.Priority = 99, 99, 1 // before the first, which then does not keep it back
			c.change(&next)
			fx := s.core.Step(next)
			assert.Equal(t, c.spared, len(effect.Left(&fx.Offers)) == 0)
			require.NoError(t, s.core.Check())
		})
	}
}

// A goroutine that begins to wait has clients asked that were asked before, and may have kept pages then: also where all requests
// wait for quotas, so that none is tried.
func TestAWaitThatBeginsAsksAgain(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{false, true} {
		s := openShop(t)
		want := waitAs(99, 4)
		want.Place.Unready, want.Place.Blocked = true, false
		s.do(want)
		s.core.waiters.unasked = false // they were
		s.core.clients.all[1].dirty = kept
		fx := s.core.Step(Block{Client: 2, Token: 99, Number: 1, Blocked: true})
		assert.Equal(t, kept, len(effect.Left(&fx.Asks)) > 0, "kept %t", kept)
	}
}

// Reports about waiters and suspended clients count in the order of sending, whichever arrives first.
func TestWhatIsSaidLateIsOld(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	want := waitAs(99, 4)
	s.do(want)
	blocked := func() bool { return s.core.waiters.find(2, 99).waiter().Blocked }
	s.do(Block{Client: 2, Token: 99, Number: 2, Blocked: true})
	assert.True(t, blocked())
	for number := range uint64(3) { // the last is no news
		s.do(Block{Client: 2, Token: 99, Number: number})
		assert.True(t, blocked())
	}
	s.do(Block{Client: 2, Token: 99, Number: 3})
	assert.False(t, blocked())
	s.do(Block{Client: 2, Token: 99, Number: 2, Blocked: true})
	assert.False(t, blocked())

	// The first client holds all memory. While it stands and everybody else waits there is a deadlock; it has got up since.
	s.do(Block{Client: 2, Token: 99, Number: 4, Blocked: true})
	stands := [][]Client{nil}
	s.do(Suspend{Client: 1, Waits: stands}) // numbers begin at 1
	s.do(Suspend{Client: 3, Number: 1, Waits: stands})
	s.do(Suspend{Client: 1, Number: 2})
	for number := range uint64(3) {
		s.do(Suspend{Client: 1, Number: number, Waits: stands})
	}
	assert.Zero(t, s.core.WaitCounts().Deadlocks)
	assert.Equal(t, 1, s.core.waiters.count())
	s.do(Suspend{Client: 1, Number: 3, Waits: stands})
	assert.EqualValues(t, 1, s.core.WaitCounts().Deadlocks, "now it stands")
}
