package pool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/units"
)

// ErrWouldDeadlock is the kind of every *DeadlockError.
var ErrWouldDeadlock = errors.New("vram: the wait would be a deadlock")

// WaitStats counts the requests that wait for memory.
type WaitStats struct {
	Waiting     int    `json:"waiting"`      // now
	DemandBytes int64  `json:"demand_bytes"` // requested by them
	Count       uint64 `json:"count"`        // of all time: those that wait, and those that have; each once
	Deadlocks   uint64 `json:"deadlocks"`    // of Count: refused with ErrWouldDeadlock
	// Longest is the duration of the longest wait that has ended, with memory or without, from the moment when the request
	// found none. It does not include current waits: Events.LongWait reports those after a second. Device.ResetPeaks restarts
	// it.
	Longest time.Duration `json:"-"`
	// Durations are the durations of the same waits.
	Durations DurationHistogram `json:"durations"`
}

// waits are the figures of waiting requests that clients read and write.
type waits struct {
	durations
	demandBytes atomic.Int64
	ages        atomic.Uint64
}

// Demand returns the sum of the bytes that requests wait for.
func (w *waits) Demand() int64 { return w.demandBytes.Load() }

// NextAge returns the age of a request that begins to wait.
func (w *waits) NextAge() uint64 { return w.ages.Add(1) }

func (p *Pool) waitStats() WaitStats {
	n := p.core.WaitCounts()
	return WaitStats{
		Waiting: n.Waiting, DemandBytes: n.DemandBytes, Count: n.Count, Deadlocks: n.Deadlocks,
		Longest: p.longest(), Durations: p.histogram(),
	}
}

// Withdraw ends the wait of a Refill. It does not wait; a grant that overtook it belongs to the
// client.
func (p *Pool) Withdraw(id core.Client, token uint64) {
	p.tell(core.Withdraw{Client: id, Token: token}, fence.Mark{})
}

// Block reports whether a goroutine waits for the answer of a waiting Refill and does nothing else.
// It does not wait.
func (p *Pool) Block(m core.Block) { p.tell(m, fence.Mark{}) }

// Suspend reports the suspensions of a client's goroutines. Messages that the caller sends after it
// has returned arrive after it.
func (p *Pool) Suspend(m core.Suspend) { p.tell(m, fence.Mark{}) }

// Exclude sets whether the client's kernels may run without end. It does not wait.
func (p *Pool) Exclude(id core.Client, excluded bool) {
	p.tell(core.Exclude{Client: id, Excluded: excluded}, fence.Mark{})
}

// AnswerOffer reports whether a client has served a request that was offered to it. It does not
// wait.
func (p *Pool) AnswerOffer(id core.Client, token uint64, taken bool) {
	p.tell(core.Offered{Client: id, Token: token, Taken: taken}, fence.Mark{})
}

// publish reports the begin and the end of demand to all clients: before the effects of the turn,
// so that a client that gets a reclaim request knows of the demand.
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
	for _, id := range slices.Sorted(maps.Keys(p.clients)) { // the same history gives the same order
		effect.Push(&out.demands, p.clients[id])
	}
}

// DeadlockError refuses a waiting request: no holder of memory makes progress, so that no free will
// come. It is the youngest blocked request whose account holds memory.
type DeadlockError struct {
	RequestedBytes int64    `json:"requested_bytes"`
	LimitBytes     int64    `json:"limit_bytes"`
	Holders        []Holder `json:"holders"` // all that hold memory
	// in the order in which they would be served: the refused request and at most 16 others
	Waiters []Waiter           `json:"waiters"`
	Largest []inventory.Buffer `json:"largest"` // as in an OutOfMemoryError
	Quota   *QuotaError        `json:"quota"`   // as in a WaitError
}

// Holder is a stream or a tenant that holds memory, with its waits. A stream's HeldBytes include buffers that are charged to
// tenants. In a DeadlockError a stream whose buffers are all charged to tenants is no holder: the tenants are.
type Holder struct {
	Stream       uint32 `json:"stream"` // 0: see Tenant
	Tenant       string `json:"tenant"`
	HeldBytes    int64  `json:"held_bytes"`
	WaitingBytes int64  `json:"waiting_bytes"` // requests that its callers wait for and do nothing else
	Suspended    bool   `json:"suspended"`     // see Stream.Suspend
}

// name names a stream or a tenant.
func name(stream uint32, tenant string) string {
	if stream == 0 {
		return fmt.Sprintf("tenant %q", tenant)
	}
	return fmt.Sprintf("stream %d", stream)
}

// String formats the holder's name, memory and waits.
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

// Waiter is a waiting request.
type Waiter struct {
	Stream   uint32 `json:"stream"`
	Tenant   string `json:"tenant"` // charged tenant; empty: none
	Bytes    int64  `json:"bytes"`
	Priority int    `json:"priority"`
	Blocked  bool   `json:"blocked"`   // a goroutine waits for the answer, and its stream or tenant is exclusive
	ForQuota bool   `json:"for_quota"` // it waits for its tenant's own frees, and not yet for memory
	// Age orders requests by the moment when they began to wait: a higher one is younger.
	Age uint64 `json:"age"`
}

// String formats the waiting stream and its request.
func (w Waiter) String() string {
	text := fmt.Sprintf("stream %d waits for %s", w.Stream, units.Bytes(w.Bytes))
	if w.Tenant != "" {
		text += fmt.Sprintf(" for tenant %q", w.Tenant)
	}
	if w.Priority != 0 {
		text += fmt.Sprintf(", priority %d", w.Priority)
	}
	if w.ForQuota {
		text += ", for its quota"
	}
	if w.Blocked {
		text += ", blocked"
	}
	return text
}

// Error names the holders in one line.
func (e *DeadlockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vram: the wait for %s would be a deadlock: no holder of memory can proceed", units.Bytes(e.RequestedBytes))
	for i, h := range e.Holders {
		b.WriteString([...]string{": ", "; "}[min(i, 1)])
		b.WriteString(h.String())
	}
	if e.Quota != nil {
		b.WriteString("; it waited for its quota: " + e.Quota.figures() + "; what would help: " + e.Quota.remedies())
	}
	inventory.Describe(&b, e.Largest)
	return b.String()
}

// Is makes errors.Is(err, ErrWouldDeadlock) hold, and errors.Is(err, ErrQuota) for a wait for a quota.
func (e *DeadlockError) Is(target error) bool {
	return target == ErrWouldDeadlock || target == ErrQuota && e.Quota != nil
}

// deadlockError returns the error of a denial with a deadlock.
func (q *quotas) deadlockError(d core.Denial) *DeadlockError {
	e := &DeadlockError{RequestedBytes: d.Shortage.RequestedBytes, LimitBytes: d.Shortage.LimitBytes}
	for _, h := range d.Deadlock.Holders {
		x := Holder{WaitingBytes: h.WaitingBytes, Suspended: h.Suspended}
		if t := q.tenantOf(h.Account); t != nil {
			x.Tenant, x.HeldBytes = t.name, t.held.Load()
		} else {
			x.Stream = uint32(h.Account)            //nolint:gosec // a stream's account is its id
			for _, s := range d.Shortage.Holdings { // it has one, since it holds memory
				if uint32(s.Client) == x.Stream {
					x.HeldBytes = s.HeldBytes
				}
			}
		}
		e.Holders = append(e.Holders, x)
	}
	for _, w := range d.Deadlock.Waiters {
		x := Waiter{Stream: uint32(d.Deadlock.Clients[w.ID]), Bytes: w.Bytes, Priority: w.Priority, Blocked: w.Blocked, ForQuota: w.Unready, Age: w.Age}
		if t := q.tenantOf(w.Account); t != nil {
			x.Tenant = t.name
			if w.Unready && w.ID == d.Deadlock.Refused {
				e.Quota = (*TenantControl)(t).Over(w.Bytes)
			}
		}
		e.Waiters = append(e.Waiters, x)
	}
	return e
}
