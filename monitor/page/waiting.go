package page

import (
	"context"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/streams"
)

// Bounds of the lists of a sample. Not more: the sample goes to every viewer in each interval. The counts include the entries
// left out.
const (
	mostWaiting = 50
	mostHolders = 10
)

// Waiters are the requests that have no answer yet, and who holds the memory that they wait for: see vram.Device.Waiters.
type Waiters struct {
	RequestCount int              `json:"requestCount"` // of all: Requests has the first of them
	Requests     []WaitingRequest `json:"requests"`     // in the order in which they would be served
	HolderCount  int              `json:"holderCount"`
	Holders      []Holder         `json:"holders"` // of memory, the largest first
	// Stalled: every holder of memory waits itself or is suspended, so that memory comes only from another goroutine of theirs,
	// or with the end of a context. It is no deadlock while there is one that is not declared exclusive.
	Stalled bool     `json:"stalled"`
	Unread  []uint32 `json:"unread,omitempty"` // streams that have failed: their requests are not in the list
}

// WaitingRequest is a request that has no answer yet.
type WaitingRequest struct {
	Position      int     `json:"position"` // in the device's queue, from 1 on; 0: it is not in it
	Bytes         int64   `json:"bytes"`
	BufferCount   int     `json:"bufferCount"`
	Stream        uint32  `json:"stream"`
	Tag           string  `json:"tag,omitempty"`
	Tenant        string  `json:"tenant,omitempty"`
	Priority      int     `json:"priority,omitempty"`
	For           string  `json:"for"`           // see streams.WaitFor
	WaitedSeconds float64 `json:"waitedSeconds"` // for memory or a quota
	LeftSeconds   float64 `json:"leftSeconds"`   // until the deadline of its context
	HasDeadline   bool    `json:"hasDeadline"`
}

// Holder is a stream or a tenant that holds memory.
type Holder struct {
	Stream       uint32 `json:"stream,omitempty"` // 0: see Tenant
	Tenant       string `json:"tenant,omitempty"`
	HeldBytes    int64  `json:"heldBytes"`
	WaitingBytes int64  `json:"waitingBytes"`
	Suspended    bool   `json:"suspended,omitempty"`
}

// readWaiters lists the requests of a device that wait. Where they cannot be read, as after Close, none is listed.
func (d *Device) readWaiters(dev *vram.Device) {
	w, err := dev.Waiters(context.Background()) // Stats, before it, has no context either
	if err != nil {
		return
	}
	d.listWaiters(&w)
}

// listWaiters lists the requests that wait, and counts how many of each tenant wait for memory.
func (d *Device) listWaiters(w *vram.Waiters) {
	d.Waiters = waitersOf(w)
	for i := range d.Tenants {
		t := &d.Tenants[i]
		for k := range w.Requests {
			if r := &w.Requests[k]; r.Tenant == t.Name && r.For == streams.WaitForMemory {
				t.WaitingForMemory++
			}
		}
	}
}

func waitersOf(w *vram.Waiters) Waiters {
	out := Waiters{
		RequestCount: len(w.Requests), Requests: []WaitingRequest{}, HolderCount: len(w.Holders), Holders: []Holder{}, Unread: w.Unread,
		Stalled: len(w.Requests) > 0 && len(w.Holders) > 0 && len(w.Going()) == 0,
	}
	for _, r := range w.Requests[:min(len(w.Requests), mostWaiting)] {
		x := WaitingRequest{
			Position: r.Position, Bytes: r.Bytes, BufferCount: r.Count, Stream: r.Stream, Tag: r.Tag, Tenant: r.Tenant, Priority: r.Priority,
			For: r.For.String(), WaitedSeconds: r.Waited.Seconds(), HasDeadline: r.HasDeadline,
		}
		if r.HasDeadline {
			x.LeftSeconds = r.Left.Seconds()
		}
		out.Requests = append(out.Requests, x)
	}
	for _, h := range w.Holders[:min(len(w.Holders), mostHolders)] {
		out.Holders = append(out.Holders, Holder(h))
	}
	return out
}
