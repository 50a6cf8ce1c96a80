package simulation

import (
	"fmt"

	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/pool/core"
)

// pool is the shell of the pool's core.
type pool struct {
	w *world
	actor
	core      *poolcore.Core
	settings  poolcore.Settings
	clients   map[poolcore.Client]*stream
	marks     []stamp
	busy      bool // a job is in flight as the core sees it
	lastToken uint64
	waiting   map[uint64]*errand
}

// errand is a Warm, Trim or Close that waits for its End.
type errand struct {
	name string
	done func(bytes int64, err error)
}

// stamp is a client's fence and the mark that stands for it.
type stamp struct {
	client poolcore.Client
	fence  poolcore.Fence
	mark   fence.Mark
}

func (p *pool) open(w *world) {
	p.w, p.name = w, "pool"
	p.clients, p.waiting = map[poolcore.Client]*stream{}, map[uint64]*errand{}
	p.settings = poolcore.Settings{LimitBytes: w.shape.limitBytes, Policy: w.anyPolicy()}
	if w.chance(30) {
		p.settings.CacheBytes = w.shape.pageBytes * int64(1+w.random.IntN(8))
	}
	if w.chance(20) {
		p.settings.CacheRuns = 1 + w.random.IntN(4)
	}
	p.core = poolcore.New(w.shape.pageBytes, w.shape.arenaPages, p.settings)
}

func (w *world) anyPolicy() poolcore.Policy {
	return poolcore.Policy{
		HandlePages: uint32(1 + w.random.IntN(16)),
		Step:        []int64{0, 16, 200}[w.random.IntN(3)],
		SteadyStep:  []int64{0, 40, 300}[w.random.IntN(3)],
		Slack:       []int64{0, 12, 140, 500}[w.random.IntN(4)],
		SteadySlack: []int64{0, 80, 300}[w.random.IntN(3)],
	}
}

// tell posts a message of the core's. mark belongs to a Return.
func (p *pool) tell(m poolcore.Message, mark fence.Mark) {
	p.w.post(&p.actor, letter{
		name:    fmt.Sprintf("%T%+v", m, summary(m)),
		receive: func() { p.step(m, mark) },
		fail:    func() { p.failed(m) },
	})
}

// summary leaves out of a message what differs from run to run: addresses.
func summary(m poolcore.Message) any {
	switch m := m.(type) {
	case poolcore.JobDone:
		return fmt.Sprintf("{done %d of %d, passed %v, err %v}", m.Done, len(m.Job.Ops), m.Passed, m.Err)
	default:
		return m
	}
}

// failed answers a message for a pool that has ended.
func (p *pool) failed(m poolcore.Message) {
	switch m := m.(type) {
	case poolcore.Refill:
		p.clients[m.Client].denied(m.Token, errClosed)
	case poolcore.Warm:
		p.ended(poolcore.End{Token: m.Token, Err: errClosed})
	case poolcore.Trim:
		p.ended(poolcore.End{Token: m.Token, Err: errClosed})
	case poolcore.Return:
		for _, r := range m.Runs {
			p.w.underway -= int64(r.Pages)
		}
	default:
	}
}

// step takes a message through the core and turns its effects into what is left to perform.
func (p *pool) step(m poolcore.Message, mark fence.Mark) {
	switch m := m.(type) {
	case poolcore.Return:
		if !mark.Zero() {
			p.marks = append(p.marks, stamp{m.Client, m.Fence, mark})
		}
		for _, r := range m.Runs {
			p.w.underway -= int64(r.Pages)
		}
	case poolcore.JobDone:
		p.busy = false
	default:
	}
	fx := p.core.Step(m)
	if fx.Job != nil {
		if p.busy {
			p.w.broken("the pool started a job while one was in flight")
		}
		p.busy = true
		order := order{job: fx.Job, marks: p.marks, mostBytes: max(p.core.Settings().LimitBytes, p.w.usedBytes())}
		p.marks = nil
		p.left = append(p.left, func() { p.w.driver.take(p.w, order) })
	}
	for _, g := range p.joined(fx.Grants) {
		p.left = append(p.left, func() { p.clients[g.client].grantedBy(g.token, g.runs, false) })
	}
	for _, d := range fx.Denials {
		err := d.Err
		if err == nil {
			err = fmt.Errorf("short: %+v", d.Shortage)
		}
		p.left = append(p.left, func() { p.clients[d.Client].denied(d.Token, err) })
	}
	for _, id := range fx.Asks {
		p.left = append(p.left, func() { p.clients[id].askedBy() })
	}
	for _, e := range fx.Ends {
		p.left = append(p.left, func() { p.ended(e) })
	}
}

type grant struct {
	client poolcore.Client
	token  uint64
	runs   []poolcore.Run
}

// joined lets runs that go home to one client travel together, as the shell does.
func (p *pool) joined(grants []poolcore.Grant) []grant {
	var out []grant
	for _, g := range grants {
		p.w.underway += int64(g.Run.Pages)
		home := false
		for i := range out {
			if g.Token == 0 && out[i].token == 0 && out[i].client == g.Client {
				out[i].runs = append(out[i].runs, g.Run)
				home = true
			}
		}
		if !home {
			out = append(out, grant{g.Client, g.Token, []poolcore.Run{g.Run}})
		}
	}
	return out
}

// ask sends an errand to the pool.
func (p *pool) ask(name string, message func(token uint64) poolcore.Message, done func(int64, error)) {
	p.lastToken++
	p.waiting[p.lastToken] = &errand{name, done}
	p.tell(message(p.lastToken), fence.Mark{})
}

func (p *pool) ended(e poolcore.End) {
	errand := p.waiting[e.Token]
	if errand == nil {
		p.w.broken("errand %d of the pool was answered twice, or never sent", e.Token)
		return
	}
	delete(p.waiting, e.Token)
	p.w.note("%s ends: %d bytes, %v", errand.name, e.Bytes, e.Err)
	if errand.done != nil {
		errand.done(e.Bytes, e.Err)
	}
}

// reconfigure replaces the settings, as a turn of the pool does.
func (p *pool) reconfigure() {
	s := p.settings
	s.Policy = p.w.anyPolicy()
	s.LimitBytes = p.w.shape.totalBytes / int64(1+p.w.random.IntN(3))
	p.settings = s
	p.w.post(&p.actor, letter{name: fmt.Sprintf("limit %d", s.LimitBytes), receive: func() {
		p.core.SetSettings(s)
	}})
}
