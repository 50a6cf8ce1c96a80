package core

import (
	"fmt"

	"github.com/go-vram/vram/internal/pool/admission"
	"github.com/go-vram/vram/internal/pool/memory"
)

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

	limitBytes            int64 // as set; settings has the rest of it, less memory outside
	reservedAtChangeBytes int64 // at SetSettings, with the growth of the job in flight: may exceed a lowered limit
}

// New makes the core of a pool over an arena of maxPages pages, or as many as the clients' heaps can name; the rest stays a
// hole for ever.
func New(pageBytes int64, maxPages uint32, s Settings) *Core {
	return newCore(memory.New(pageBytes, maxPages, false), s)
}

// NewPlain makes the core of a pool of plain segments. Its page numbers are names only: where a segment lies the
// driver decides, and AllocPlain reports.
func NewPlain(pageBytes int64, maxPages uint32, s Settings) *Core {
	return newCore(memory.New(pageBytes, maxPages, true), s)
}

func newCore(m *memory.Memory, s Settings) *Core {
	c := &Core{
		settings: s, limitBytes: s.LimitBytes, memory: m, clients: clients{all: map[Client]*client{}},
		waiters: waiters{parked: map[uint64]*request{}, named: map[ticket]*request{}}, fences: fences{watches: map[Client]watch{}},
	}
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

// SetUsage sets the memory of a client's stream. Call it for each client before a Refill, a Looked and a Tick.
func (c *Core) SetUsage(id Client, u Usage) {
	cl := c.clients.all[id]
	if cl == nil || cl.reserves {
		return
	}
	if cl.gone { // it makes no more requests, and returns its callers' frees
		u.UsedBytes = 0
	}
	cl.usage = u
	cl.ownPeak.note(u.UsedBytes)
	c.clients.count(cl)
}

// SetTenants sets the tenants that hold memory, and the usage of accounts with a share. Call it before a step in which a
// request waits or asks for pages.
func (c *Core) SetTenants(holders []admission.Account, usage []admission.Usage) {
	c.scheduler.noProgress.tenants = holders
	c.waiters.table.SetUsage(usage)
}

// ResetPeaks restarts the peaks at the present values. given has the bytes of callers of clients that have not reported them
// since.
func (c *Core) ResetPeaks(given map[Client]int64) {
	lent := c.setGiven(given)
	c.memory.ResetPeak()
	c.clients.givenPeak.Reset(min(c.clients.givenBytes, lent))
}

// setGiven records the bytes of the callers of clients, and returns the bytes lent to all.
func (c *Core) setGiven(given map[Client]int64) (lentBytes int64) {
	lentBytes = c.memory.LentBytes()
	for _, id := range c.clients.ids {
		if bytes, ok := given[id]; ok {
			c.clients.setGiven(c.clients.all[id], bytes, lentBytes)
		}
	}
	return lentBytes
}

// Left returns the effects of the last step that were not performed: the step, or their performance, panicked.
func (c *Core) Left() *Effects { return &c.fx }

// Closed reports whether a Close has ended.
func (c *Core) Closed() bool { return c.phase.closed }

// InFlight returns the job whose JobDone is still to come, or nil.
func (c *Core) InFlight() *Job { return c.jobs.inFlight }

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

// lowerLimit takes the memory outside off the limit.
func (c *Core) lowerLimit() { c.settings.LimitBytes = max(0, c.limitBytes-c.memory.OutsideBytes()) }
