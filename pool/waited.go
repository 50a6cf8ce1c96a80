package pool

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/go-vram/vram/internal/order"
	"github.com/go-vram/vram/internal/units"
)

// WaitError ends a request that waited for other people's frees by the end of its context: errors.Is finds context.DeadlineExceeded
// or context.Canceled in it.
type WaitError struct {
	RequestedBytes int64
	Waited         time.Duration // since the request was made
	Tenant         string        // whom the request was charged to; empty: nobody
	// Holders are the streams that hold memory, as their last turns left it, and the tenants that have buffers in it, the largest
	// of either first.
	Holders []Holder
	Err     error // the context's
}

// Error says the facts in one line.
func (e *WaitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vram: waited %v for %s", e.Waited, units.Bytes(e.RequestedBytes))
	if e.Tenant != "" {
		fmt.Fprintf(&b, " for tenant %q", e.Tenant)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	for _, h := range e.Holders[:min(mostHolders, len(e.Holders))] {
		fmt.Fprintf(&b, "; %s", h)
	}
	if more := len(e.Holders) - mostHolders; more > 0 {
		fmt.Fprintf(&b, "; %d more hold memory", more)
	}
	return b.String()
}

// Unwrap is the context's error.
func (e *WaitError) Unwrap() error { return e.Err }

// EndWait completes the error of a request that has waited in vain, whose Holders are the streams so far. It takes no turn.
func (p *Pool) EndWait(e *WaitError, t *Tenant) *WaitError {
	larger := func(a, b *Holder) int { return cmp.Compare(b.HeldBytes, a.HeldBytes) }
	order.Stably(e.Holders, larger)
	if t != nil {
		e.Tenant = t.name
	}
	streams := len(e.Holders)
	for _, t := range p.quotas.tenants() {
		if held := t.held.Load(); held > 0 {
			e.Holders = append(e.Holders, Holder{Tenant: t.name, HeldBytes: held})
		}
	}
	order.Stably(e.Holders[streams:], larger)
	return e
}
