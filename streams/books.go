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
type books struct {
	*wiring
	core     *core.Core
	claims   claims.Table
	draining bool // Close has come: nobody is served any more
	wanted   bool // requests of the device wait: the pool is told of all that comes home
	out      *effects
	spare    atomic.Pointer[effects] // carried out, for the next turn that leaves some
	hand     hand
	hook     func(point) // of tests
}

// hand is what a turn holds between two books: taken out of one and not entered into the next. A panic there loses nothing, since
// what is at hand is put back behind it.
type hand struct {
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
	beforeErrand              // a lane has come
)

// String names the place to a host.
func (p point) String() string {
	return [...]string{"before search", "before answer", "before return", "before errand"}[p]
}

// reach tells a test that a turn has got there.
func (b *books) reach(p point) {
	if b.hook != nil {
		b.hook(p)
	}
}

// effects are those of this turn.
func (b *books) effects() *effects {
	if b.out == nil {
		if b.out = b.spare.Swap(nil); b.out == nil {
			b.out = &effects{stream: b.wiring, spare: b.spare.Store}
		}
	}
	return b.out
}

// detach takes the effects of this turn; nil: there are none.
func (b *books) detach() *effects {
	out := b.out
	b.out = nil
	return out
}

// putBack enters what is at hand where it was.
func (b *books) putBack(h hand) {
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
func (b *books) lanes() poolcore.Lanes {
	return poolcore.Lanes{Count: b.core.Lanes(), Bytes: b.core.LaneBytes()}
}

// facts are what decisions about claims need to know.
func (b *books) facts() claims.Stream {
	return claims.Stream{Closing: b.draining, Demand: b.pool.Demand() > 0, Handler: b.handler != nil}
}

// keeping are the fences that keep freed memory.
func (b *books) keeping() (all []fencing) {
	b.core.Drain()
	b.core.EachLine(func(l *line.Line, number uint64) {
		all = append(all, fencing{line: timeline(l), number: number})
	})
	return all
}

// live lists the buffers that live.
func (b *books) live() (all []LiveBuffer) {
	b.core.Live(func(p cudadrv.Ptr, bytes int64, slot *magazine.Slot) {
		all = append(all, LiveBuffer{b.handle.id, p, bytes, slot.Tag(), slot.Allocated()})
	})
	return all
}

// find is the live buffer in whose block an address lies; the zero Buffer: there is none.
func (b *books) find(p cudadrv.Ptr) Buffer {
	slot, word, bytes, found := b.core.Lookup(p)
	if !found {
		return Buffer{}
	}
	return Buffer{slot, word, bytes}
}

// liveBytes reads the bytes in buffers, behind what has been freed until now.
func (b *books) liveBytes() int64 {
	b.core.Drain()
	return b.core.LiveBytes()
}

// givenBytes is the same of what buffers and magazines have.
func (b *books) givenBytes() int64 {
	b.core.Drain()
	return b.core.GivenBytes()
}

// tenantsOnly reports whether every buffer in the stream's memory is charged to a tenant. It looks at each while requests wait.
// While none does it says so where it may be: it is asked again before a deadlock is declared.
func (b *books) tenantsOnly() bool {
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
func (b *books) stats() Stats {
	n := b.core.Snapshot()
	return Stats{
		Stream: b.handle.id, LiveBytes: n.LiveBytes, PeakLiveBytes: n.PeakLiveBytes, PendingBytes: n.PendingBytes, CachedBytes: n.CachedBytes,
		SpanBytes: n.SpanBytes, MagazineBytes: n.MagazineBytes, RangeBytes: n.RangeBytes, PageBytes: n.PageBytes,
		HeldBytes: n.HeldBytes, FreeRanges: n.FreeRanges, LargestFreeBytes: n.LargestFreeBytes, NodeVisits: n.NodeVisits,
		AllocCount: n.AllocCount, FreeCount: n.FreeCount, LiveCount: n.LiveCount,
		MagazineHits: n.AllocCount - n.RangeCount - n.RefillCount, RangeHits: n.RangeCount, PoolHits: n.RefillCount,
		Waiting: b.claims.Len(), LaneCount: n.LaneCount, LaneBytes: n.LaneBytes, LostFences: b.handle.line.Lost() + b.handle.lost.Load(),
	}
}
