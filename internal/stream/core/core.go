package core

import (
	"errors"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Config configures a core.
type Config struct {
	Base      cudadrv.Ptr // of the arena that pages count from
	PageBytes int64
	// Places are the addresses of pages by number, if they do not follow from Base: see pool.Pool.Places.
	Places []cudadrv.Ptr
	Budget Budget
	Exact  bool   // as in Settings
	Live   *Gauge // of all streams of the device, for Exact; nil: no sum is kept
	// AgeTicks and Share are as in Settings.
	AgeTicks int
	Share    magazine.Share
	// Cover tracks the pages that no fence covers: see Core.Seal.
	Cover bool
	// Lines are the timelines of the streams that may use the blocks of this one; nil: none has a number.
	Lines *line.Lines
	// Allowance sums the pending memory of the device's streams beyond the minimum of each. It is bounded by
	// a part of Limit, the device's limit in bytes. nil: each stream has the minimum.
	Allowance *Allowance
	Limit     *atomic.Int64
}

// Core is the state of a stream's cache: parts that own their state. The exported methods of the embedded
// parts are its API.
type Core struct {
	owner *magazine.Owner

	// Memory, from the ground up.
	ranges
	retention retention
	spans     spans
	room      room

	// Counts and events.
	usage
	misses
	counted counted
	limits
	wanted
	idle    idle
	surplus surplus

	// Optional parts, or idle in most streams.
	coverage
	directory *directory // nil before the first Lookup

	// Allocation and free.
	inFlight
	arrivals
	classes classes
	large   large
}

// New returns the core of a stream whose callers use the cache.
func New(cfg Config, cache *magazine.Cache, waker magazine.Waker) *Core {
	pageUnits := uint32(cfg.PageBytes >> sizeclass.UnitShift)
	owner := magazine.NewOwner(cache, waker)
	c := &Core{
		owner:  owner,
		ranges: ranges{heap: heap.New(pageUnits), base: cfg.Base, places: cfg.Places, pageUnits: pageUnits},
	}
	r := &c.ranges
	c.usage = usage{ranges: r, gauge: cfg.Live, parts: new(Parts), inFlight: &c.inFlight}
	c.retention.exacts, c.retention.ranges, c.retention.usage = &owner.Exacts, r, &c.usage // in place: its tracks are long
	c.spans = spans{magazines: &owner.Spans, ranges: r, wanted: &c.wanted}
	c.room = room{ranges: r, retention: &c.retention, spans: &c.spans}
	c.misses = misses{
		usage:     &c.usage,
		stability: stability{owner: owner, usage: &c.usage, retention: &c.retention, wanted: &c.wanted},
	}
	c.limits = limits{ranges: r, retention: &c.retention}
	c.idle = idle{owner: owner, ranges: r, misses: &c.misses}
	c.coverage.ranges = r
	c.arrivals = arrivals{
		owner: owner, ranges: r,
		retention: &c.retention, spans: &c.spans, inFlight: &c.inFlight, wanted: &c.wanted,
	}
	c.classes = classes{magazines: &owner.Spans, spans: &c.spans, room: &c.room, wanted: &c.wanted}
	c.large = large{
		exacts: &owner.Exacts, loose: &owner.Loose, ranges: r, retention: &c.retention, room: &c.room, wanted: &c.wanted,
	}

	c.inFlight.init(cfg.Lines, &c.arrivals, slack{limit: cfg.Limit, device: cfg.Allowance, setPile: owner.SetPile})
	if cfg.Cover {
		c.coverage.begin()
	}
	c.SetSettings(Settings{Budget: cfg.Budget, Exact: cfg.Exact, AgeTicks: cfg.AgeTicks, Share: cfg.Share})
	return c
}

// Alloc serves a request that no magazine served, or returns how many pages it needs. Precondition: 0 <
// bytes, and the units fit an uint32.
func (c *Core) Alloc(bytes int64, hint int) (s *magazine.Slot, needPages uint32) {
	units := uint32(sizeclass.Units(bytes))
	if c.usage.exact {
		return c.allocExact(units)
	}
	cameBack := false
	if c.owner.HasFreed() || c.Waits() { // saves the call
		cameBack = c.arrivals.takeHome(c.owner.Freed(), units)
	}
	if c.owner.HasUsed() {
		c.arrivals.sortUsed(!c.wanted.on)
	}
	if c.usage.quiescence.due(c.ranges.usedUnits(), c.misses.Turns) {
		c.Drain()
		c.room.closeIdle()
	}
	s = c.search(units, hint, cameBack)
	if s == nil && c.arrivals.sortUsed(false) { // some uses may have ended
		s = c.search(units, hint, false)
	}
	if s == nil {
		return nil, c.lacks(units)
	}
	c.usage.notePeak()
	return s, 0
}

// search serves a request from the stream's memory; nil if there is no room.
func (c *Core) search(units uint32, hint int, cameBack bool) *magazine.Slot {
	if units <= sizeclass.MaxUnits {
		return c.classes.alloc(sizeclass.Of(uint64(units)), hint)
	}
	return c.large.alloc(units, hint, cameBack)
}

// lacks returns how many pages a request needs that found no room: for its span, or its block.
func (c *Core) lacks(units uint32) uint32 {
	if units <= sizeclass.MaxUnits {
		units = sizeclass.SpanUnits(sizeclass.Of(uint64(units)))
	}
	return c.ranges.pagesFor(uint64(units))
}

// allocExact is Alloc with a block of the request's own, of any length.
func (c *Core) allocExact(units uint32) (s *magazine.Slot, needPages uint32) {
	c.Drain()
	block := c.room.take(units)
	if block == heap.None {
		return nil, c.ranges.pagesFor(uint64(units))
	}
	s = c.large.place(block, units)
	c.usage.notePeak()
	return s, 0
}

// AllocAligned serves a request for an address that is a multiple of align bytes with a block of its own, or
// returns how many pages it needs. wide is set after a grant of that many did not help: it asks for enough
// pages for any offset. Preconditions: as for Alloc; align is a power of two, at least 512, and its units fit
// 31 bits.
func (c *Core) AllocAligned(bytes, align int64, wide bool) (s *magazine.Slot, needPages uint32) {
	units, alignUnits := sizeclass.Units(bytes), uint32(align>>sizeclass.UnitShift)
	if s = c.allocAligned(uint32(units), alignUnits); s != nil {
		c.usage.noteGiven()
		return s, 0
	}
	if wide || alignUnits > c.ranges.pageUnits {
		units += uint64(alignUnits) - 1
	}
	return nil, c.ranges.pagesFor(units)
}

// AllocPart serves one request of a batch with a block of its own. It returns nil if there is no room: see
// AllocMany. Precondition: 0 < bytes, and the units fit an uint32.
func (c *Core) AllocPart(bytes int64) *magazine.Slot {
	return c.allocAligned(uint32(sizeclass.Units(bytes)), 1)
}

func (c *Core) allocAligned(units, alignUnits uint32) *magazine.Slot {
	c.Drain()
	s := c.large.allocAligned(units, alignUnits)
	if s != nil {
		c.usage.noteUse()
	}
	return s
}

// AllocMany serves up to most requests for blocks of that many units, as a batch groups them. It passes the
// slots to take and returns their number, which is below most if the stream's memory holds no more. It carves
// blocks beyond the classes contiguously; they return to the heap when freed. Call Drain first. Precondition:
// units and most are positive; units is the length of a class or exceeds the classes.
func (c *Core) AllocMany(units uint32, most, hint int, take func(*magazine.Slot)) int {
	var got int
	if units <= sizeclass.MaxUnits && !c.usage.exact {
		got = c.classes.allocMany(sizeclass.Of(uint64(units)), most, hint, take)
	} else {
		got = c.large.allocMany(units, most, hint, take)
	}
	c.usage.noteUse() // ServedMany reports whether the batch was granted
	return got
}

// Probe runs a search, puts the slot back that it finds, and reports whether it found one. No peak has the block.
func (c *Core) Probe(search func() *magazine.Slot) (found bool) {
	c.usage.probing = true
	defer func() { c.usage.probing = false }()
	s := search()
	if s == nil {
		return false
	}
	c.PutBack(s)
	c.Note()
	return true
}

// Undo takes back the block of the Alloc that Served counted last, and its count. No caller has seen the
// block.
func (c *Core) Undo(s *magazine.Slot) {
	c.PutBack(s)
	c.misses.undo()
}

// PutBack takes back a block that no caller has seen. It leaves the counts of Served.
func (c *Core) PutBack(s *magazine.Slot) {
	units := s.Magazine().UnitsOf(s)
	if c.giveBack(s) {
		c.owner.Uncount(units)
	}
}

// PutBackCounted is PutBack of a block that a Snapshot may have counted: see Parts.Seen. Its allocation and
// its free stay counted, since counts never fall.
func (c *Core) PutBackCounted(s *magazine.Slot) { c.giveBack(s) }

// giveBack frees a block, and reports whether it did.
func (c *Core) giveBack(s *magazine.Slot) bool {
	if c.arrivals.retract(s) {
		return true
	}
	// Not a comparison of Frees before and after: a caller may take and free the block between the two.
	return !errors.Is(s.Free(s.Word()), magazine.ErrBadFree) // with ErrClosed the block is freed
}

// Grant adds a run of pages that the pool lent.
func (c *Core) Grant(r Run) { c.ranges.grant(r) }
