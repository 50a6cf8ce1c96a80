package pool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/pool/core"
)

// ErrWouldDeadlock is the kind of every *DeadlockError.
var ErrWouldDeadlock = errors.New("vram: the wait would be a deadlock")

// WaitStats counts the requests that wait for memory.
type WaitStats struct {
	Waiting     int   // now
	DemandBytes int64 // that they want
	Count       uint64
	Deadlocks   uint64        // of them, refused with ErrWouldDeadlock
	Longest     time.Duration // of those that have ended
}

// waitClock is the part of WaitStats that clients measure.
type waitClock struct{ longestNanos atomic.Int64 }

// Demand is how many bytes requests wait for.
func (p *Pool) Demand() int64 { return p.demand.Load() }

// NextAge is the age of a request that begins to wait.
func (p *Pool) NextAge() uint64 { return p.ages.Add(1) }

// NoteWait counts how long a request has waited.
func (p *Pool) NoteWait(d time.Duration) {
	for old := p.waits.longestNanos.Load(); int64(d) > old && !p.waits.longestNanos.CompareAndSwap(old, int64(d)); {
		old = p.waits.longestNanos.Load()
	}
}

func (p *Pool) waitStats() WaitStats {
	return WaitStats{
		Waiting: p.core.WaiterCount(), DemandBytes: p.core.DemandBytes(), Count: p.core.WaitCount(),
		Deadlocks: p.core.DeadlockCount(), Longest: time.Duration(p.waits.longestNanos.Load()),
	}
}

// Withdraw takes back a Refill that waits. It does not wait; what was granted meanwhile is the client's.
func (p *Pool) Withdraw(id core.Client, token uint64) {
	p.tell(core.Withdraw{Client: id, Token: token}, fence.Mark{})
}

// Block says whether somebody waits for the answer of a Refill that waits and does nothing else. It does not wait.
func (p *Pool) Block(m core.Block) { p.tell(m, fence.Mark{}) }

// Suspend says whether a client waits for what only others bring about. When it returns what the caller tells the pool later,
// by whatever way, comes behind it.
func (p *Pool) Suspend(m core.Suspend) { p.tell(m, fence.Mark{}) }

// Exclude says whether the client's kernels need not end by themselves. It does not wait.
func (p *Pool) Exclude(id core.Client, excluded bool) {
	p.tell(core.Exclude{Client: id, Excluded: excluded}, fence.Mark{})
}

// AnswerOffer says whether a client has served a request that was offered to it. It does not wait.
func (p *Pool) AnswerOffer(id core.Client, token uint64, taken bool) {
	p.tell(core.Offered{Client: id, Token: token, Taken: taken}, fence.Mark{})
}

// publish tells all clients when demand begins and when it ends: before the effects of the turn, so that whoever is asked knows.
func (p *Pool) publish() {
	demand := p.core.DemandBytes()
	if p.core.WaiterCount() > 0 {
		demand = max(demand, 1)
	}
	old := p.demand.Load()
	if old != demand {
		p.demand.Store(demand)
	}
	if (old > 0) == (demand > 0) {
		return
	}
	out := p.effects()
	for _, id := range slices.Sorted(maps.Keys(p.clients)) { // the same history tells them in the same order
		out.demands.push(p.clients[id])
	}
}

// DeadlockError refuses a request that waited: everybody who holds memory waits, so that no free will come. It is the
// youngest of those that wait and whose account holds memory.
type DeadlockError struct {
	RequestedBytes int64
	LimitBytes     int64
	Holders        []Holding // who holds memory
	Waiters        []Waiter  // who waits, in the order in which they would be served; the refused one is among them
}

// Waiter is a request that waits.
type Waiter struct {
	Stream   uint32
	Bytes    int64
	Priority int
	Blocked  bool // a goroutine waits for the answer
}

// Error says the facts in one line.
func (e *DeadlockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vram: the wait for %d bytes would be a deadlock: all that hold memory wait", e.RequestedBytes)
	for _, h := range e.Holders {
		fmt.Fprintf(&b, "; stream %d holds %d", h.Stream, h.HeldBytes)
	}
	for _, w := range e.Waiters {
		fmt.Fprintf(&b, "; stream %d waits for %d", w.Stream, w.Bytes)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrWouldDeadlock) hold.
func (e *DeadlockError) Is(target error) bool { return target == ErrWouldDeadlock }

// deadlockError is the error of a denial with a deadlock.
func deadlockError(d core.Denial) error {
	e := &DeadlockError{RequestedBytes: d.Shortage.RequestedBytes, LimitBytes: d.Shortage.LimitBytes}
	for _, h := range d.Shortage.Holdings {
		if h.HeldBytes > 0 {
			e.Holders = append(e.Holders, holding(h))
		}
	}
	for _, w := range d.Deadlock.Waiters {
		e.Waiters = append(e.Waiters, Waiter{uint32(d.Deadlock.Clients[w.ID]), w.Bytes, w.Priority, w.Blocked})
	}
	return e
}
