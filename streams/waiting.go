package streams

import (
	"context"
	"fmt"
	"time"

	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/units"
)

// WaitFor is the cause of a wait.
type WaitFor uint8

// The causes of waits.
const (
	// WaitForMemory: frees of any callers; the request has Request.Wait.
	WaitForMemory WaitFor = iota
	// WaitForQuota: frees of its own tenant; the request has Request.Wait.
	WaitForQuota
	// WaitForPool: the pool searches memory, and takes some from the driver.
	WaitForPool
	// WaitForHandler: Config.OnOutOfMemory was called, and has not returned.
	WaitForHandler
	// WaitForWork: work on the device that still uses freed memory.
	WaitForWork
)

// waitForNames are the texts of the causes.
var waitForNames = [...]string{"memory", "its tenant's quota", "the pool", "OnOutOfMemory", "work on the device"} //nolint:gochecknoglobals // constant table

// String returns the cause in words.
func (w WaitFor) String() string {
	if int(w) < len(waitForNames) {
		return waitForNames[w]
	}
	return fmt.Sprintf("WaitFor(%d)", uint8(w))
}

// MarshalText implements encoding.TextMarshaler: String.
func (w WaitFor) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *WaitFor) UnmarshalText(text []byte) error {
	for i, name := range waitForNames {
		if name == string(text) {
			*w = WaitFor(i) //nolint:gosec // one of a short table
			return nil
		}
	}
	return fmt.Errorf("vram: %q is no cause of a wait, want one of %q", text, waitForNames)
}

// WaitingRequest is a request that has no answer yet.
type WaitingRequest struct {
	Stream   uint32  `json:"stream"`
	Bytes    int64   `json:"bytes"` // requested; of a batch, the sum
	Count    int     `json:"count"` // of buffers
	Tag      string  `json:"tag"`
	Tenant   string  `json:"tenant"` // charged with it; empty: none
	Priority int     `json:"priority"`
	For      WaitFor `json:"for"`
	// Waited is how long it has waited for memory or for its quota; else 0.
	Waited time.Duration `json:"-"`
	// Left is the time until the deadline of its context; it means nothing without HasDeadline.
	Left        time.Duration `json:"-"`
	HasDeadline bool          `json:"has_deadline"`
	// Blocked: a goroutine waits for the answer, and its stream or tenant is exclusive.
	Blocked bool `json:"blocked"`
	// Place is where it was made; unknown without Config.Debug and Config.Observer.
	Place site.Stack `json:"place"`
	// Position is its place in the device's queue, from 1 on; 0: it is on its way to the queue, or waits
	// for something else than memory and quotas.
	Position int `json:"position"`
	// Age orders requests by the moment when they began to wait: a higher one is younger.
	Age uint64 `json:"age"`
}

// String returns the request, and the cause and the duration of its wait.
func (r WaitingRequest) String() string {
	text := units.Bytes(r.Bytes)
	if r.Count != 1 {
		text += fmt.Sprintf(" in %s", units.Count(r.Count, "buffer"))
	}
	text += fmt.Sprintf(" on stream %d", r.Stream)
	if r.Tag != "" {
		text += fmt.Sprintf(", tag %q", r.Tag)
	}
	if r.Tenant != "" {
		text += fmt.Sprintf(", tenant %q", r.Tenant)
	}
	if r.Priority != 0 {
		text += fmt.Sprintf(", priority %d", r.Priority)
	}
	text += ", waits for " + r.For.String()
	if r.Waited > 0 {
		text += " since " + units.Duration(r.Waited)
	}
	switch {
	case r.HasDeadline && r.Left <= 0:
		text += ", its deadline has passed"
	case r.HasDeadline:
		text += ", deadline in " + units.Duration(r.Left)
	}
	if r.Blocked {
		text += ", blocked"
	}
	if r.Place.Known() {
		text += ", made at " + r.Place.String()
	}
	return text
}

// Waiting lists the stream's requests that have no answer yet, in no order. Requests whose answer is
// on its way are not in the list. It waits for the current turn only.
func (c *Control) Waiting(ctx context.Context) ([]WaitingRequest, error) {
	return answered(ctx, c.Stream, func() []WaitingRequest { return c.turn.dispatch.waitingRequests() })
}

func (d *dispatcher) waitingRequests() (all []WaitingRequest) {
	now := time.Now()
	for _, held := range d.state.claims.In(claims.Parked, claims.Asked, claims.Consulted, claims.Delayed) {
		c := claimOf(held)
		if !c.isWanted() {
			continue
		}
		r := WaitingRequest{
			Stream: d.wiring.cuda.id, Bytes: c.wantedBytes(), Count: c.want.count(), Tag: c.want.tag(), Tenant: c.tenant.Name(),
			Priority: c.priority, For: c.waitsFor(), Blocked: c.blocked(), Place: c.from,
		}
		if c.State() == claims.Parked {
			r.Age, r.Waited = c.age, max(1, now.Sub(c.parkedAt))
		}
		if !c.deadline.IsZero() {
			r.HasDeadline, r.Left = true, c.deadline.Sub(now)
		}
		all = append(all, r)
	}
	return all
}

// waitsFor returns the cause of the wait of a claim in the table.
func (c *claim) waitsFor() WaitFor {
	switch c.State() {
	case claims.Asked:
		return WaitForPool
	case claims.Consulted:
		return WaitForHandler
	case claims.Delayed:
		return WaitForWork
	case claims.Parked, claims.Served:
	}
	if c.Owes() {
		return WaitForQuota
	}
	return WaitForMemory
}

// Suspensions returns the streams of which any may end each wait of the stream's goroutines that
// the program has declared: see Suspend and Handover. An empty list of streams: any may. It takes no turn.
func (c *Control) Suspensions() (waits [][]uint32) {
	p := c.suspensions.progress.Load()
	if p == nil {
		return nil
	}
	for _, x := range p.all {
		if x.over.Load() {
			continue
		}
		by := []uint32{}
		for _, id := range x.by {
			by = append(by, uint32(id))
		}
		waits = append(waits, by)
	}
	return waits
}
