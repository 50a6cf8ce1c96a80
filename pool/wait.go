package pool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/order"
	"github.com/go-vram/vram/internal/units"
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

// waits is what clients read and measure of the requests that wait.
type waits struct {
	demandBytes  atomic.Int64
	ages         atomic.Uint64
	longestNanos atomic.Int64
}

// Demand is how many bytes requests wait for.
func (w *waits) Demand() int64 { return w.demandBytes.Load() }

// NextAge is the age of a request that begins to wait.
func (w *waits) NextAge() uint64 { return w.ages.Add(1) }

// NoteWait counts how long a request has waited.
func (w *waits) NoteWait(d time.Duration) {
	for old := w.longestNanos.Load(); int64(d) > old && !w.longestNanos.CompareAndSwap(old, int64(d)); {
		old = w.longestNanos.Load()
	}
}

func (p *Pool) waitStats() WaitStats {
	n := p.core.WaitCounts()
	return WaitStats{
		Waiting: n.Waiting, DemandBytes: n.DemandBytes, Count: n.Count, Deadlocks: n.Deadlocks,
		Longest: time.Duration(p.longestNanos.Load()),
	}
}

// Withdraw takes back a Refill that waits. It does not wait; what was granted meanwhile is the client's.
func (p *Pool) Withdraw(id core.Client, token uint64) {
	p.tell(core.Withdraw{Client: id, Token: token}, fence.Mark{})
}

// Block says whether somebody waits for the answer of a Refill that waits and does nothing else. It does not wait.
func (p *Pool) Block(m core.Block) { p.tell(m, fence.Mark{}) }

// Suspend says for what a client waits that only others bring about. When it returns what the caller tells the pool later,
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
	n := p.core.WaitCounts()
	demand := n.DemandBytes
	if n.Waiting > 0 {
		demand = max(demand, 1)
	}
	old := p.demandBytes.Load()
	if old != demand {
		p.demandBytes.Store(demand)
	}
	if (old > 0) == (demand > 0) {
		return
	}
	out := p.effects()
	for _, id := range order.Keys(p.clients) { // the same history tells them in the same order
		out.demands.Push(p.clients[id])
	}
}

// DeadlockError refuses a request that waited: nobody who holds memory goes on, so that no free will come. It is the
// youngest of those that wait and whose account holds memory.
type DeadlockError struct {
	RequestedBytes int64
	LimitBytes     int64
	Holders        []Holder // who holds memory
	Waiters        []Waiter // who waits, in the order in which they would be served: the refused one and at most 16 others
}

// Holder is a stream or a tenant that holds memory, and what it does. What a stream's buffers are charged to tenants is held by those.
type Holder struct {
	Stream       uint32 // 0: it is the tenant
	Tenant       string
	HeldBytes    int64
	WaitingBytes int64 // that its callers wait for and do nothing else
	Suspended    bool  // it waits for something else, or for another stream: see Stream.Suspend
}

// name is the stream's or the tenant's.
func name(stream uint32, tenant string) string {
	if stream == 0 {
		return fmt.Sprintf("tenant %q", tenant)
	}
	return fmt.Sprintf("stream %d", stream)
}

// String says who it is and what it does.
func (h Holder) String() string {
	text := name(h.Stream, h.Tenant) + " holds " + units.Bytes(h.HeldBytes)
	if h.WaitingBytes > 0 {
		text += " and waits for " + units.Bytes(h.WaitingBytes)
	}
	if h.Suspended {
		text += " and is suspended"
	}
	return text
}

// Waiter is a request that waits.
type Waiter struct {
	Stream   uint32
	Tenant   string // whom it is charged to, if anybody
	Bytes    int64
	Priority int
	Blocked  bool // a goroutine waits for the answer, and its stream or tenant is exclusive
}

// Error says the facts in one line.
func (e *DeadlockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vram: the wait for %s would be a deadlock: nobody who holds memory goes on", units.Bytes(e.RequestedBytes))
	for i, h := range e.Holders {
		b.WriteString([...]string{": ", "; "}[min(i, 1)])
		b.WriteString(h.String())
	}
	return b.String()
}

// Is makes errors.Is(err, ErrWouldDeadlock) hold.
func (e *DeadlockError) Is(target error) bool { return target == ErrWouldDeadlock }

// deadlockError is the error of a denial with a deadlock.
func (q *quotas) deadlockError(d core.Denial) error {
	e := &DeadlockError{RequestedBytes: d.Shortage.RequestedBytes, LimitBytes: d.Shortage.LimitBytes}
	for _, h := range d.Deadlock.Holders {
		x := Holder{WaitingBytes: h.WaitingBytes, Suspended: h.Suspended}
		if t := q.tenantOf(h.Account); t != nil {
			x.Tenant, x.HeldBytes = t.name, t.held.Load()
		} else {
			x.Stream = uint32(h.Account) //nolint:gosec // a stream's account is its id
			at := slices.IndexFunc(d.Shortage.Holdings, func(s core.Holding) bool { return uint32(s.Client) == x.Stream })
			x.HeldBytes = d.Shortage.Holdings[at].HeldBytes // it has one, since it holds memory
		}
		e.Holders = append(e.Holders, x)
	}
	for _, w := range d.Deadlock.Waiters {
		x := Waiter{Stream: uint32(d.Deadlock.Clients[w.ID]), Bytes: w.Bytes, Priority: w.Priority, Blocked: w.Blocked}
		if t := q.tenantOf(w.Account); t != nil {
			x.Tenant = t.name
		}
		e.Waiters = append(e.Waiters, x)
	}
	return e
}
