package streams

import (
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// turnState is the state that all parts of a turn share: the core with its blocks, the table of claims,
// objects in transit, and the effects.
type turnState struct {
	wiring    *wiring
	core      *core.Core
	claims    claims.Table
	draining  bool // Close has begun: no request is served
	wanted    bool // requests of the device wait: every free is reported to the pool
	out       *effects
	spare     atomic.Pointer[effects] // performed, for reuse
	inTransit inTransit
	last      atomic.Pointer[Stats]
	wakeDue   atomic.Bool // a woken message is queued
	hook      func(point) // for tests
}

// inTransit has the objects that a turn has taken out of one structure and not yet put into another. After
// a panic putBack returns them.
type inTransit struct {
	slot *magazine.Slot // counted as served, not delivered
	runs []core.Run     // out of the heap, not in an effect
}

// point is a point of a turn at which tests interfere.
type point uint8

const (
	beforeSearch point = iota // of a claim
	beforeAnswer              // a claim's block is taken and has a slot
	beforeReturn              // pages are out of the heap
)

// String names the place to a Host.
func (p point) String() string {
	return [...]string{"before search", "before answer", "before return"}[p]
}

// reach calls the test hook.
func (b *turnState) reach(p point) {
	if b.hook != nil {
		b.hook(p)
	}
}

// effects returns the effects of this turn.
func (b *turnState) effects() *effects {
	if b.out == nil {
		if b.out = b.spare.Swap(nil); b.out == nil {
			b.out = &effects{stream: b.wiring, spare: b.spare.Store}
		}
	}
	return b.out
}

// detach takes the effects of this turn. It returns nil if there are none.
func (b *turnState) detach() *effects {
	out := b.out
	b.out = nil
	return out
}

// putBack returns objects in transit to the structures that they came from.
func (b *turnState) putBack(h inTransit) {
	if h.slot != nil {
		b.core.Undo(h.slot)
	}
	for _, run := range h.runs {
		b.core.Grant(run)
	}
}

// facts returns the inputs of decisions about claims.
func (b *turnState) facts() claims.Stream {
	return claims.Stream{Closing: b.draining, Demand: b.wiring.pool.Demand() > 0, Handler: b.wiring.handled()}
}

// wake makes a later turn drain freed blocks. Any goroutine may call it, also inside a turn.
func (b *turnState) wake() {
	if !b.wakeDue.Swap(true) {
		b.wiring.ref.Tell(&woken{})
	}
}

// pendingFences returns the fences of pending memory.
func (b *turnState) pendingFences() (all []fencing) {
	b.core.Drain()
	b.core.EachLine(func(l *line.Line, number uint64) {
		all = append(all, fencing{line: timeline(l), number: number})
	})
	return all
}

// live lists the live buffers.
func (b *turnState) live() (all []LiveBuffer) {
	b.core.Live(func(p cudadrv.Ptr, bytes int64, slot *magazine.Slot) {
		all = append(all, describe(b.wiring.cuda.id, p, bytes, slot))
	})
	return all
}

// sampled lists the live buffers that have samples in the profile.
func (b *turnState) sampled() (all []SampledBuffer) {
	b.core.Live(func(_ cudadrv.Ptr, _ int64, slot *magazine.Slot) {
		h := slot.History()
		if h == nil {
			return
		}
		if s := &h.Sample; s.Counts() {
			all = append(all, SampledBuffer{
				b.wiring.cuda.id, h.Address, h.Bytes, h.Tag, h.Tenant, h.Allocated, time.Unix(0, s.At), s.Weight(),
			})
		}
	})
	return all
}

// watchLive visits the live buffers and marks them, so that the observer sees their frees.
func (b *turnState) watchLive(found func(BufferEvent)) {
	b.core.LiveHandles(func(bytes int64, slot *magazine.Slot, word uint64) {
		if e, live := b.wiring.sampler.found(slot, word, bytes); live && found != nil {
			found(e)
		}
	})
}

// find returns the live buffer whose block contains an address, or the zero Buffer.
func (b *turnState) find(p cudadrv.Ptr) Buffer {
	slot, word, bytes, found := b.core.Lookup(p)
	if !found {
		return Buffer{}
	}
	return Buffer{slot, word, bytes}
}

// usedBytes drains freed blocks and returns the bytes in buffers and magazines.
func (b *turnState) usedBytes() int64 {
	b.core.Drain()
	return b.core.GivenBytes()
}

// tenantsOnly reports whether every buffer in the stream's memory is charged to a tenant. It checks
// each buffer while requests wait, and otherwise returns true if that is possible: the pool asks
// again before it declares a deadlock.
func (b *turnState) tenantsOnly() bool {
	if !b.wiring.charged.Load() || b.core.PendingBytes() > 0 {
		return false
	}
	if b.core.UncoveredBytes() > 0 { // stays until the callers' next request
		return false
	}
	if !b.wanted {
		return true
	}
	some, only := false, true
	b.core.Live(func(_ cudadrv.Ptr, _ int64, slot *magazine.Slot) {
		some, only = true, only && slot.IsCharged()
	})
	return some && only
}

// stats reads the statistics of the stream.
func (b *turnState) stats() Stats {
	n := b.core.Snapshot()
	return Stats{
		RequestCounts: b.wiring.tally.Counts(), Sizes: sizeStats(n.Sizes),
		PeakPendingBytes: n.PeakPendingBytes, PeakHeldBytes: n.PeakHeldBytes, Stream: b.wiring.cuda.id,
		LiveBytes: n.LiveBytes, PeakLiveBytes: n.PeakLiveBytes, PendingBytes: n.PendingBytes, CachedBytes: n.CachedBytes,
		SpanBytes: n.SpanBytes, MagazineBytes: n.MagazineBytes, RangeBytes: n.RangeBytes, PageBytes: n.PageBytes,
		HeldBytes: n.HeldBytes, FreeRanges: n.FreeRanges, LargestFreeBytes: n.LargestFreeBytes, NodeVisits: n.NodeVisits,
		AllocCount: n.AllocCount, FreeCount: n.FreeCount, LiveCount: n.LiveCount,
		MagazineHits: n.AllocCount - n.RangeCount - n.RefillCount, RangeHits: n.RangeCount, PoolHits: n.RefillCount, DriverMisses: n.MappedCount,
		Waiting:    b.claims.Len(),
		LostFences: b.wiring.cuda.line.Lost() + b.wiring.cuda.lost.Load(),
	}
}

// saveStats reads the statistics and stores them for readers that take no turn, or that read after the
// actor has ended: such a reader sees no count below one that was read before.
func (b *turnState) saveStats() Stats {
	last := b.stats()
	b.last.Store(&last)
	return last
}
