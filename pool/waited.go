package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/internal/units"
)

// WaitError ends a request that waited for other callers' frees by the end of its context, or an
// Await of its future by the end of the context of that: errors.Is finds context.DeadlineExceeded or
// context.Canceled in it.
type WaitError struct {
	RequestedBytes int64         `json:"requested_bytes"`
	Waited         time.Duration `json:"-"`       // since the request was made
	Stream         uint32        `json:"stream"`  // of the request, by its ID
	Tag            string        `json:"tag"`     // of the request
	Tenant         string        `json:"tenant"`  // charged tenant; empty: none
	Holders        []Holder      `json:"holders"` // the streams that hold memory, as of their last turns, the largest first
	// Tenants are the tenants that have buffers, the largest first. Their memory is part of the streams' memory.
	Tenants []Holder `json:"tenants"`
	// Ahead is the request directly ahead of it, and Position its place among the waiting ones, from 1 on. Nil and 0 if
	// unknown: another goroutine was just at it.
	Ahead    *Waiter `json:"ahead"`
	Position int     `json:"position"`
	// Largest is as in an OutOfMemoryError, of streams where no other goroutine was at work.
	Largest []inventory.Buffer `json:"largest"`
	Err     error              `json:"err"` // the context's
	// Quota has the figures of the tenant where the request waited for its tenant's own frees until the
	// end, and not for memory: then errors.Is finds ErrQuota. Nil: it waited for memory. Of a wait for a
	// quota Largest has the tenant's buffers alone.
	Quota *QuotaError `json:"quota"`
	// Pending: the context was a Future.Await's, and the request stays: Future.Cancel ends it.
	Pending bool `json:"pending"`
}

// Error formats the figures and the largest holders in one line; of a wait for a quota the tenant's figures and the remedies.
func (e *WaitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vram: waited %v for %s%s: %v", e.Waited, units.Bytes(e.RequestedBytes), requester(e.Stream, e.Tag, e.Tenant), e.Err)
	if e.Pending {
		b.WriteString(", and the request stays pending")
	}
	if e.Quota != nil {
		b.WriteString("; it waited for its quota: " + e.Quota.figures() + "; what would help: " + e.Quota.remedies())
	} else {
		describe(&b, "; ", e.Holders)
		describe(&b, "; of that ", e.Tenants)
	}
	if e.Ahead != nil {
		fmt.Fprintf(&b, "; in place %d, after this one: %v", e.Position, e.Ahead)
	}
	inventory.Describe(&b, e.Largest)
	return b.String()
}

// describe lists the largest holders, after a text for the first.
func describe(b *strings.Builder, before string, holders []Holder) {
	for i, h := range holders[:min(maxHolders, len(holders))] {
		b.WriteString([...]string{before, ", "}[min(i, 1)])
		b.WriteString(h.String())
	}
	if more := len(holders) - maxHolders; more > 0 {
		fmt.Fprintf(b, ", %d more hold memory", more)
	}
}

// Unwrap returns the context's error.
func (e *WaitError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrQuota) hold for a wait for a quota.
func (e *WaitError) Is(target error) bool { return target == ErrQuota && e.Quota != nil }

// EndWait completes the error of a wait, whose Holders are the streams so far, of a request of that
// age. It waits for no turn.
func (p *Pool) EndWait(e *WaitError, t *Tenant, age uint64) *WaitError {
	if e.Quota != nil {
		e.Largest = slices.DeleteFunc(slices.Clone(e.Largest), func(b inventory.Buffer) bool { return b.Tenant != t.name })
	}
	e.Position, e.Ahead = p.placeOf(age)
	byBytes(e.Holders)
	if t != nil {
		e.Tenant = t.name
	}
	e.Tenants = p.quotas.holders()
	byBytes(e.Tenants)
	return e
}

// holders returns the tenants that have buffers.
func (q *quotas) holders() (all []Holder) {
	for _, t := range q.tenants() {
		if held := t.held.Load(); held > 0 {
			all = append(all, Holder{Tenant: t.name, HeldBytes: held})
		}
	}
	return all
}

// byBytes puts the largest holder first; of equal ones the first stream or tenant.
func byBytes(all []Holder) {
	slices.SortFunc(all, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.HeldBytes, a.HeldBytes), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Tenant, b.Tenant))
	})
}
