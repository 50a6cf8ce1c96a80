package cuda

import (
	"slices"

	"github.com/go-vram/vram/streams"
)

// keep keeps the memory of a buffer from outside, freed or not: until the end of the hold, or for arguments of SetArgs until
// the lease ends.
func (p *capture) keep(b Buffer) error {
	if !p.replaceable {
		return b.RecordStream(p.pool.hold.Stream())
	}
	if p.lease == nil {
		p.lease = p.pool.hold.NewLease()
	}
	return p.lease.Keep(b)
}

// giveUp ends the lease of arguments that no kernel has, if there is one, after the launches so far, and those that could not
// be ended before: the driver may refuse that, and a launch's stream may be captured.
func (g *Graph) giveUp(l *streams.Lease) {
	if l != nil {
		g.unused = append(g.unused, l)
	}
	if len(g.unused) == 0 {
		return
	}
	launched, ended := g.launches(), []*streams.Lease{}
	g.unused = slices.DeleteFunc(g.unused, func(l *streams.Lease) bool {
		if l.End(launched...) != nil {
			return false
		}
		ended = append(ended, l)
		return true
	})
	g.pool.take(ended)
}

// take takes leases that no graph uses any more.
func (p *Pool) take(all []*streams.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases = append(p.leases, all...)
	p.finishLeases()
}

// finishLeases finishes the leases for which nothing waits. It asks the driver about the oldest one, and about others only
// after one that has finished.
func (p *Pool) finishLeases() {
	waits := false
	p.leases = slices.DeleteFunc(p.leases, func(l *streams.Lease) bool {
		if waits {
			return false
		}
		finished := l.Finish()
		waits = !finished && l.Ended()
		return finished
	})
}
