package pool

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/pool/core"
)

// Reporter tells the pool that the usage of a client may have changed, so that the pool asks those clients only. Any number of
// goroutines may use it.
//
//	unlisted --Changed: CAS--> listed, and then in the pool's list --before the next decision by usage--> unlisted, Usage is read
type Reporter struct {
	pool   *Pool
	id     core.Client
	client Client
	listed atomic.Bool
	next   *Reporter // in the pool's list, written before it is there
}

// NewReporter makes the reporter of a client, which Join makes known.
func (p *Pool) NewReporter(id core.Client, c Client) *Reporter {
	return &Reporter{pool: p, id: id, client: c}
}

// Changed notes that the client's Usage may have changed since the pool last read it. Call it after the change. It does not
// wait, and does nothing for a nil Reporter, or if the pool has not read the usage since the last Changed.
func (r *Reporter) Changed() {
	if r == nil || r.listed.Load() || !r.listed.CompareAndSwap(false, true) {
		return
	}
	for at := &r.pool.changed; ; {
		r.next = at.Load()
		if at.CompareAndSwap(r.next, r) {
			return
		}
	}
}

// tellUsage passes the usage of the clients that may have changed it to the core, before messages whose decisions depend on it.
func (p *Pool) tellUsage(m core.Message) {
	switch m.(type) {
	case core.Refill, core.Looked, core.Tick:
		for r := p.changed.Swap(nil); r != nil; {
			next := r.next
			r.next = nil          // else a client that stays keeps those that have left
			r.listed.Store(false) // before the read: a change that it misses lists the reporter again
			p.core.SetUsage(r.id, r.client.Usage())
			r = next
		}
	}
}

// noteUsage makes the pool read a client's usage again before the next such message: the core enters the report in this one.
func (p *Pool) noteUsage(m core.Message) {
	switch m := m.(type) {
	case core.Refill:
		p.reporters[m.Client].Changed()
	case core.Return:
		p.reporters[m.Client].Changed()
	case core.Leave:
		p.reporters[m.Client].Changed()
	}
}
