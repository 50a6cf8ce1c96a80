package pool

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
)

var _ actors.Behavior = (*Pool)(nil)

// Receive implements actors.Behavior: one message, one step of the core.
func (p *Pool) Receive(m actors.Message) {
	switch m := m.(type) {
	case *question:
		p.answer(m)
	case *step:
		p.step(m)
	case *recharge:
		p.quotas.charge(m.tenant, p.ready)
		p.quotas.drop(m.tenant)
	case *enlist:
		for _, t := range m.tenants {
			p.quotas.enlist(t)
			p.quotas.drop(t)
		}
	case *refused:
		p.quotas.unqueue(m.client, m.token, p.ready)
	}
	if p.sharing != nil {
		p.sharing.turnEnds()
	}
	if p.debug {
		if err := p.core.Check(); err != nil {
			panic(err) // the audit after it quarantines
		}
	}
}

func (p *Pool) answer(q *question) {
	if q.visit != nil {
		q.visit()
		return
	}
	q.run()
	q.reply.Complete(struct{}{}, nil)
}

func (p *Pool) step(s *step) {
	switch m := s.message.(type) {
	case core.Join:
		p.clients[m.Client], p.reporters[m.Client] = s.client, s.reporter
		s.reporter.Changed()
	case core.Return:
		if m.Answer {
			m.TookNs = int64(p.clock() - p.askedAt[m.Client])
			s.message = m
		}
		if !s.mark.Zero() {
			p.marks = append(p.marks, markedFence{m.Client, m.Fence, s.mark})
			s.mark = fence.Mark{} // Fail releases none of the pool's
		}
	case core.Refill:
		if p.clients[m.Client] == nil { // after Leave: its client must get the denial
			p.clients[m.Client] = s.client
			defer delete(p.clients, m.Client)
		}
	case core.Leave, core.Unreserve, core.Withdraw, core.Ready, core.Block, core.Suspend, core.Offered, core.Warm, core.Trim, core.JobDone, core.WatchOver, core.Exclude, core.Looked, core.Tick, core.Close, core.Special:
	}
	if s.promise != nil {
		p.waiting[s.token] = s.promise
	}
	p.tellTenants(s.message)
	p.tellUsage(s.message)
	p.noteUsage(s.message)
	fx := p.core.Step(s.message)
	p.publish()
	if done, ok := s.message.(core.JobDone); ok {
		p.report(done)
	}
	m, refill := s.message.(core.Refill)
	owes := refill && s.charger != nil
	if owes {
		p.quotas.enqueue(queued{charger: s.charger, client: m.Client, token: m.Token}) // before a denial of this step takes it from the queue
	}
	if !fx.Empty() {
		p.collect(fx)
	}
	if owes {
		p.quotas.charge(s.charger.Tenant(), p.ready) // after this step's effects: a step changes them
	}
	if m, ok := s.message.(core.Withdraw); ok {
		p.quotas.unqueue(m.Client, m.Token, p.ready)
	}
}

// tellTenants passes the tenants' usage to the core, if any request waits or is about to.
func (p *Pool) tellTenants(m core.Message) {
	r, _ := m.(core.Refill)
	p.core.SetTenants(p.quotas.accounts(r.Patience != core.Waiting && p.core.WaitCounts().Waiting == 0))
}

// ready admits a Refill that its quota allows.
func (p *Pool) ready(q queued) {
	m := core.Ready{Client: q.client, Token: q.token}
	p.tellTenants(m)
	if fx := p.core.Step(m); !fx.Empty() {
		p.collect(fx)
	}
	p.publish()
}

// AddTenants makes tenants known, those that are not yet. Requests may name them once it has returned.
func (p *Pool) AddTenants(all ...*Tenant) {
	for _, t := range all {
		t.pool.Store(p)
	}
	p.ref.Call(&enlist{tenants: all})
}

// collect turns the core's effects into calls, while the turn still owns the table of clients.
func (p *Pool) collect(fx *core.Effects) {
	out := p.effects()
	for g := range effect.Popped(&fx.Grants) {
		if c := p.clients[g.Client]; c != nil {
			p.granted[g.Client] += 1 + uint64(len(g.More))
			out.grant(c, g)
		}
	}
	for d := range effect.Popped(&fx.Denials) {
		if len(p.quotas.queued) > 0 { // after this turn's step: the step of another would change its effects
			p.ref.Tell(&refused{pool: p, client: d.Client, token: d.Token})
		}
		if c := p.clients[d.Client]; c != nil {
			effect.Push(&out.denials, denial{client: c, token: d.Token, err: p.charged(p.quotas.denialError(d, c)), quiet: d.Quiet})
		}
	}
	for o := range effect.Popped(&fx.Offers) {
		if c := p.clients[o.Client]; c != nil {
			effect.Push(&out.offers, offer{client: c, token: o.Token, runsGranted: p.granted[o.Client]})
		}
	}
	for a := range effect.Popped(&fx.Asks) {
		if c := p.clients[a.Client]; c != nil {
			p.reclaimCount++
			effect.Push(&out.reclaims, reclaimRequest{client: c, runsGranted: p.granted[a.Client], pages: a.Pages})
			p.askedAt[a.Client] = p.clock()
		}
	}
	for id := range effect.Popped(&fx.Looks) {
		if c := p.clients[id]; c != nil {
			effect.Push(&out.looks, c)
			p.reporters[id].Changed() // it may have nothing to collect any more, or no turn for it
		}
		out.looked = true
	}
	if fx.Job != nil {
		out.work = &work{job: fx.Job, marks: p.marks, waiter: p.clients[fx.Job.Waiter]}
		p.marks = nil
		fx.Job = nil // as an entry of a list is popped
		if out.work.job.Idle {
			for _, id := range slices.Sorted(maps.Keys(p.clients)) {
				out.work.clients = append(out.work.clients, p.clients[id])
			}
		}
	}
	for e := range effect.Popped(&fx.Ends) {
		if promise := p.waiting[e.Token]; promise != nil {
			delete(p.waiting, e.Token)
			effect.Push(&out.ends, completion{promise: promise, bytes: e.Bytes, err: e.Err})
		}
	}
	for id := range effect.Popped(&fx.Gone) {
		delete(p.clients, id)
		delete(p.reporters, id)
		delete(p.granted, id)
		delete(p.askedAt, id)
	}
}

// effects returns the effects of the current turn.
func (p *Pool) effects() *effects {
	if p.out == nil {
		if p.out = p.spare.Swap(nil); p.out == nil {
			p.out = &effects{pool: p}
		}
	}
	return p.out
}

// grant adds a grant. Runs that go back to one client are delivered together, and before the
// answers to Refills: a client may send its next Refill when it gets an answer.
func (e *effects) grant(c Client, g core.Grant) {
	if g.Token == 0 {
		for i, have := range effect.Left(&e.home) {
			if have.id == g.Client {
				effect.Left(&e.home)[i].runs = append(have.runs, g.Run)
				return
			}
		}
		effect.Push(&e.home, grant{c, g.Client, 0, []core.Run{g.Run}, false})
		return
	}
	effect.Push(&e.grants, grant{c, g.Client, g.Token, append(g.More, g.Run), g.Mapped})
}

// Detach implements actors.Behavior.
func (p *Pool) Detach() actors.Effects {
	if p.out == nil {
		return nil
	}
	out := p.out
	p.out = nil
	return out
}

// Panicked implements actors.Behavior: the pool continues if its books balance. Decisions of a step before it panicked are in
// the books, and are performed.
func (p *Pool) Panicked(panicked actors.Panic) error {
	if err := p.core.Check(); err != nil {
		return fmt.Errorf("pool: quarantined: %w", err)
	}
	p.publish()
	if fx := p.core.Left(); !fx.Empty() {
		p.collect(fx)
	}
	if s, ok := panicked.Message.(*step); ok {
		if m, ok := s.message.(core.Refill); ok { // denied, so that nobody else ends its wait
			p.ref.Tell(&step{pool: p, message: core.Withdraw{Client: m.Client, Token: m.Token}})
		}
	}
	return nil
}

// denyLeft denies the requests that a step had granted when it panicked: books that do not balance
// lend nothing. Its other answers are delivered.
func (p *Pool) denyLeft(cause error) {
	answers := core.Effects{Denials: p.core.Left().Denials, Ends: p.core.Left().Ends}
	for g := range effect.Popped(&p.core.Left().Grants) {
		if g.Token != 0 {
			effect.Push(&answers.Denials, core.Denial{Client: g.Client, Token: g.Token, Err: cause})
		}
	}
	if !answers.Empty() {
		p.collect(&answers)
	}
}

// Stopped implements actors.Behavior. Waiting requests are denied; memory stays in place.
func (p *Pool) Stopped(cause error) {
	p.failure.Store(&cause)
	p.denyLeft(cause)
	fx := p.core.Abandon(cause)
	p.publish()
	if !fx.Empty() {
		p.collect(fx)
	}
	if p.sharing != nil {
		p.sharing.turnEnds()
	}
}
