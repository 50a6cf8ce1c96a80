package core

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/internal/pool/admission"
	"github.com/go-vram/vram/internal/pool/memory"
)

// ErrClosed refuses what comes after Close.
var ErrClosed = errors.New("pool: closed")

// Core is the state of a pool.
type Core struct {
	settings  Settings
	memory    *memory.Memory
	clients   clients
	queue     queue
	waiters   waiters
	fences    fences
	budget    budget
	phase     phase
	answers   answers
	asks      asks
	jobs      jobs
	scheduler scheduler
	fx        Effects

	driverGrants          uint64
	limitBytes            int64 // of the settings as they were given: those here have what is left of it beside memory outside
	reservedAtChangeBytes int64 // when the settings changed, with what the job in flight adds: so much may be above a lowered limit
}

// New makes the core of a pool over an arena of that many pages, at most those that the heaps of the clients can name: what is beyond
// stays a hole for ever.
func New(pageBytes int64, maxPages uint32, s Settings) *Core {
	return newCore(memory.New(pageBytes, maxPages, false), s)
}

// NewPlain makes the core of a pool of plain segments. Its page numbers are names only: where a segment lies the
// driver decides, and AllocPlain reports.
func NewPlain(pageBytes int64, maxPages uint32, s Settings) *Core {
	return newCore(memory.New(pageBytes, maxPages, true), s)
}

func newCore(m *memory.Memory, s Settings) *Core {
	c := &Core{settings: s, limitBytes: s.LimitBytes, memory: m, clients: newClients(), waiters: newWaiters(), fences: newFences()}
	c.answers = answers{
		settings: &c.settings, memory: m, clients: &c.clients, queue: &c.queue, waiters: &c.waiters, budget: &c.budget, phase: &c.phase,
		fx: &c.fx,
	}
	c.budget = budget{settings: &c.settings, memory: m, clients: &c.clients}
	c.asks = asks{memory: m, clients: &c.clients, queue: &c.queue, budget: &c.budget, jobs: &c.jobs, fx: &c.fx}
	c.jobs = jobs{settings: &c.settings, memory: m, budget: &c.budget, fx: &c.fx}
	c.scheduler = scheduler{
		settings: &c.settings, memory: m, clients: &c.clients, queue: &c.queue, waiters: &c.waiters, fences: &c.fences,
		answers: &c.answers, jobs: &c.jobs, phase: &c.phase,
		ladder: ladder{
			memory: m, clients: &c.clients, fences: &c.fences, answers: &c.answers, asks: &c.asks, jobs: &c.jobs,
			grower: grower{
				settings: &c.settings, memory: m, clients: &c.clients, budget: &c.budget, answers: &c.answers, asks: &c.asks, jobs: &c.jobs,
			},
		},
		warmer:   warmer{settings: &c.settings, memory: m, answers: &c.answers, jobs: &c.jobs},
		shrinker: shrinker{settings: &c.settings, memory: m, answers: &c.answers, asks: &c.asks, jobs: &c.jobs},
		noProgress: noProgress{
			clients: &c.clients, queue: &c.queue, waiters: &c.waiters, fences: &c.fences, answers: &c.answers, asks: &c.asks,
		},
	}
	c.scheduler.ladder.rows = c.scheduler.ladder.table()
	return c
}

// Step takes one message and returns what must be performed. The result is valid until the next step.
func (c *Core) Step(m Message) *Effects {
	c.fx.reset()
	if c.take(m) {
		c.scheduler.advance()
	}
	c.finishClose()
	c.memory.NoteFree()
	return &c.fx
}

// take enters a message into the books. It reports whether requests may go on by that.
func (c *Core) take(m Message) bool {
	switch m := m.(type) {
	case Join:
		c.clients.join(m)
	case Unreserve:
		return c.unreserve(m)
	case Looked:
		c.queue.looked()
		return true
	case Leave:
		return c.leave(m)
	case Refill:
		c.refill(m)
	case Withdraw:
		return c.withdraw(m)
	case Ready:
		return c.waiters.ready(m)
	case Block:
		return c.waiters.block(m)
	case Suspend:
		return c.scheduler.noProgress.suspend(m)
	case Offered:
		return c.offered(m)
	case Return:
		return c.takeBack(m)
	case Warm:
		c.warm(m)
	case Trim:
		c.scheduler.enqueue(&request{kind: trim, token: m.Token, keepBytes: m.KeepBytes})
	case JobDone:
		return c.jobDone(m)
	case WatchOver:
		c.watchOver(m)
		return true
	case Exclude:
		return c.exclude(m)
	case Tick:
		c.tick()
	case Close:
		c.close(m)
	case Special:
		return m.part.enter(c)
	}
	return false
}

// SetSettings replaces the settings. They hold from the next step on; the job in flight still ends as it
// was planned.
func (c *Core) SetSettings(s Settings) {
	c.settings, c.limitBytes = s, s.LimitBytes
	c.lowerLimit()
	c.reservedAtChangeBytes = c.memory.ReservedBytes()
	c.budget.changed()
	c.waiters.changed()
	if j := c.jobs.inFlight; j != nil {
		for i := range j.Ops {
			if op := &j.Ops[i]; op.Verb == memory.Create || op.Verb == memory.AllocPlain {
				c.reservedAtChangeBytes += c.memory.Bytes(op.Run.Pages)
			}
		}
	}
}

// SetUsage reports what a client's stream has at this moment. It is called for each before a
// Refill, a Looked and a Tick.
func (c *Core) SetUsage(id Client, u Usage) {
	cl := c.clients.all[id]
	if cl == nil || cl.reserves {
		return
	}
	if cl.gone { // it asks for nothing any more, and returns what its callers free
		u.UsedBytes = 0
	}
	cl.usage = u
	cl.ownPeak.note(u.UsedBytes)
	c.clients.count(cl)
}

// SetTenants reports which accounts hold memory beside the clients', and what those have that have a share. It is called before a step in
// which anybody waits or asks for pages.
func (c *Core) SetTenants(holders []admission.Account, usage []admission.Usage) {
	c.scheduler.noProgress.tenants = holders
	c.waiters.table.SetUsage(usage)
}

// ResetPeaks restarts the peaks at the present values. given is what the callers of clients have that have not reported it since.
func (c *Core) ResetPeaks(given map[Client]int64) {
	lent := c.setGiven(given)
	c.memory.ResetPeak()
	c.clients.resetPeak(lent)
}

// setGiven notes what the callers of clients have, and returns what is lent to all.
func (c *Core) setGiven(given map[Client]int64) (lentBytes int64) {
	lentBytes = c.memory.LentBytes()
	for _, id := range c.clients.ids {
		if bytes, ok := given[id]; ok {
			c.clients.setGiven(c.clients.all[id], bytes, lentBytes)
		}
	}
	return lentBytes
}

// Left are the effects of the last step that were not taken up: the step has panicked, or what followed it.
func (c *Core) Left() *Effects { return &c.fx }

// Abandon denies everything that waits, for a pool whose actor has ended. Afterwards only the outcome of
// the job in flight and a Close do anything.
func (c *Core) Abandon(cause error) *Effects {
	c.fx.reset()
	token, open := c.phase.closeToken, !c.phase.closed
	c.phase.abandon()
	c.denyAll(cause)
	if token != 0 && open {
		c.fx.Ends.Push(End{Token: token, Err: cause})
	}
	return &c.fx
}

// Closed reports whether a Close has ended.
func (c *Core) Closed() bool { return c.phase.closed }

// InFlight is the job whose JobDone is still to come, or nil.
func (c *Core) InFlight() *Job { return c.jobs.inFlight }

// Settings are those in force.
func (c *Core) Settings() Settings { return c.settings }

// Check holds the books against the invariants of the package comments. It visits every page.
func (c *Core) Check() error {
	held := map[Client]uint64{}
	if err := c.memory.Check(c.jobs.inFlight != nil, held); err != nil {
		return err //nolint:wrapcheck // the error is complete
	}
	for id, cl := range c.clients.all {
		if held[id] != cl.heldPages {
			return fmt.Errorf("pool: client %d holds %d pages, the books say %d", id, held[id], cl.heldPages)
		}
	}
	if err := c.clients.check(); err != nil {
		return err
	}
	if reserved, limit := c.memory.ReservedBytes(), c.settings.LimitBytes; reserved > limit && limit > 0 && reserved > c.reservedAtChangeBytes {
		return fmt.Errorf("pool: %d bytes reserved over the limit of %d", reserved, limit)
	}
	return c.waiters.check()
}

// String is a line for transcripts.
func (c *Core) String() string {
	m := c.memory
	return fmt.Sprintf("reserved %d free %d lent %d busy %d waiting %d",
		m.ReservedBytes(), m.FreeBytes(), m.LentBytes(), m.BusyBytes(), len(c.queue.refills)+len(c.queue.others))
}
