package streams

import (
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence/line"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/claims"
	"github.com/go-vram/vram/streams/core"
	"github.com/go-vram/vram/streams/magazine"
	"github.com/go-vram/vram/streams/magazine/lane"
)

// books are what the turn of a stream owns: the core with its blocks, and what a turn has at hand and leaves to be done. The types
// loans, searches, desk and turn are each made of the one before it and add what their own methods may change.
type turnState struct {
	*wiring
	core      *core.Core
	claims    claims.Table
	draining  bool // Close has come: nobody is served any more
	wanted    bool // requests of the device wait: the pool is told of all that comes home
	out       *effects
	spare     atomic.Pointer[effects] // carried out, for the next turn that leaves some
	inTransit inTransit
	hook      func(point) // of tests
}

// hand is what a turn holds between two books: taken out of one and not entered into the next. A panic there loses nothing, since
// what is at hand is put back behind it.
type inTransit struct {
	slot *magazine.Slot // counted as served and not delivered
	runs []core.Run     // out of the heap and not part of an effect
	lane *lane.Lane     // to be closed: nobody comes for it again
}

// point is a place of a turn where tests interfere.
type point uint8

const (
	beforeSearch point = iota // a claim is at hand
	beforeAnswer              // its block is taken and has a slot
	beforeReturn              // pages are out of the heap
	beforeLane                // a lane has come
)

// String names the place to a host.
func (p point) String() string {
	return [...]string{"before search", "before answer", "before return", "before errand"}[p]
}

// reach tells a test that a turn has got there.
func (b *turnState) reach(p point) {
	if b.hook != nil {
		b.hook(p)
	}
}

// effects are those of this turn.
func (b *turnState) effects() *effects {
	if b.out == nil {
		if b.out = b.spare.Swap(nil); b.out == nil {
			b.out = &effects{stream: b.wiring, spare: b.spare.Store}
		}
	}
	return b.out
}

// detach takes the effects of this turn; nil: there are none.
func (b *turnState) detach() *effects {
	out := b.out
	b.out = nil
	return out
}

// putBack enters what is at hand where it was.
func (b *turnState) putBack(h inTransit) {
	if h.slot != nil {
		b.core.Undo(h.slot)
	}
	for _, run := range h.runs {
		b.core.Grant(run)
	}
	if h.lane != nil {
		b.core.CloseLane(h.lane)
	}
}

// lanes is what the pool is told of the lanes.
func (b *turnState) lanes() poolcore.Lanes {
	return poolcore.Lanes{Count: b.core.Lanes(), Bytes: b.core.LaneBytes()}
}

// facts are what decisions about claims need to know.
func (b *turnState) facts() claims.Stream {
	return claims.Stream{Closing: b.draining, Demand: b.pool.Demand() > 0, Handler: b.handler != nil}
}

// keeping are the fences that keep freed memory.
func (b *turnState) pendingFences() (all []fencing) {
	b.core.Drain()
	b.core.EachLine(func(l *line.Line, number uint64) {
		all = append(all, fencing{line: timeline(l), number: number})
	})
	return all
}

// live lists the buffers that live.
func (b *turnState) live() (all []LiveBuffer) {
	b.core.Live(func(p cudadrv.Ptr, bytes int64, slot *magazine.Slot) {
		all = append(all, LiveBuffer{b.cuda.id, p, bytes, slot.Tag(), slot.Allocated()})
	})
	return all
}

// find is the live buffer in whose block an address lies; the zero Buffer: there is none.
func (b *turnState) find(p cudadrv.Ptr) Buffer {
	slot, word, bytes, found := b.core.Lookup(p)
	if !found {
		return Buffer{}
	}
	return Buffer{slot, word, bytes}
}

// liveBytes reads the bytes in buffers, behind what has been freed until now.
func (b *turnState) liveBytes() int64 {
	b.core.Drain()
	return b.core.LiveBytes()
}

// givenBytes is the same of what buffers and magazines have.
func (b *turnState) usedBytes() int64 {
	b.core.Drain()
	return b.core.GivenBytes()
}

// tenantsOnly reports whether every buffer in the stream's memory is charged to a tenant. It looks at each while requests wait.
// While none does it says so where it may be: it is asked again before a deadlock is declared.
func (b *turnState) tenantsOnly() bool {
	if !b.charged.Load() || b.core.Lanes() > 0 || b.core.PendingBytes() > 0 {
		return false
	}
	if b.core.UncoveredBytes() > 0 { // kept for the callers' next request
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

// stats reads the books.
func (b *turnState) stats() Stats {
	n := b.core.Snapshot()
	return Stats{
		Stream: b.cuda.id, LiveBytes: n.LiveBytes, PeakLiveBytes: n.PeakLiveBytes, PendingBytes: n.PendingBytes, CachedBytes: n.CachedBytes,
		SpanBytes: n.SpanBytes, MagazineBytes: n.MagazineBytes, RangeBytes: n.RangeBytes, PageBytes: n.PageBytes,
		HeldBytes: n.HeldBytes, FreeRanges: n.FreeRanges, LargestFreeBytes: n.LargestFreeBytes, NodeVisits: n.NodeVisits,
		AllocCount: n.AllocCount, FreeCount: n.FreeCount, LiveCount: n.LiveCount,
		MagazineHits: n.AllocCount - n.RangeCount - n.RefillCount, RangeHits: n.RangeCount, PoolHits: n.RefillCount,
		Waiting: b.claims.Len(), LaneCount: n.LaneCount, LaneBytes: n.LaneBytes, LostFences: b.cuda.line.Lost() + b.cuda.lost.Load(),
	}
}
