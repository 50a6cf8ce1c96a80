package core

import (
	"errors"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
	"github.com/go-vram/vram/streams/magazine/lane"
)

// Config is what a core is made with.
type Config struct {
	Base      cudadrv.Ptr // of the arena that pages count from
	PageBytes int64
	// Places are the addresses of pages by number, where they do not follow from Base: see pool.Pool.Places.
	Places []cudadrv.Ptr
	Budget Budget
	Exact  bool   // as in Settings
	Live   *Gauge // of all streams of the device, for Exact; nil: nobody sums
	// Cover keeps book of what no fence covers: see Core.Seal.
	Cover bool
	// Lines are the timelines of the streams that may use the blocks of this one; nil: none has a number.
	Lines *line.Lines
	// Allowance is what the streams of the device leave waiting for fences, within a part of Limit, which is the device's in
	// bytes. nil: each has the least.
	Allowance *Allowance
	Limit     *atomic.Int64
}

// Run is a sequence of pages of the arena.
type Run struct {
	First, Pages uint32
}

// Core is the state of a stream's cache.
type Core struct {
	heap      *heap.Heap
	owner     *magazine.Owner
	leases    *lane.Leases
	base      cudadrv.Ptr
	places    []cudadrv.Ptr // nil: pages lie side by side from base on
	pageUnits uint32
	counting  bool // exactly
	budget    Budget

	track     [magazine.LargeBuckets]track
	recent    lru
	keptUnits uint64 // of the slots that keep large blocks, in use and free
	spanUnits uint64 // of the spans of the classes
	livePeak  uint64 // units: what the magazines' share is measured by
	peakUnits uint64 // the most that callers were given since ResetPeak
	ebb       ebb
	waiting   uint64 // units of requests that wait for the pool
	parts     uint64 // units that batches have got which wait for the rest, and may be refused: in use, and nobody's
	misses    Counts
	calm
	taken  []Run
	undone uint64 // blocks that came back by Undo
	byPool bool   // what Served counted last
	pressed
	idle      idle
	cover     *cover // nil: a fence can be recorded at any time
	watchful  bool   // Over has something to look at
	lines     *line.Lines
	pending   pending
	directory *directory // nil: nobody has asked yet
	wanted    wanted
	exact
}

// Counts says which level served requests, beside the magazines.
type Counts struct {
	Turns  uint64 // requests that no magazine served
	Refill uint64 // of them with the pool's help; the others by the stream's own free ranges or a magazine after all
}

// New makes the core of a stream whose callers use that cache.
func New(cfg Config, cache *magazine.Cache, waker magazine.Waker) *Core {
	c := &Core{
		heap:      heap.New(uint32(cfg.PageBytes >> sizeclass.UnitShift)),
		owner:     magazine.NewOwner(cache, waker),
		base:      cfg.Base,
		places:    cfg.Places,
		pageUnits: uint32(cfg.PageBytes >> sizeclass.UnitShift),
		exact:     exact{live: cfg.Live},
		lines:     cfg.Lines,
		pending:   newPending(cfg.Limit, cfg.Allowance),
		pressed:   pressed{squeezed: squeezeAt(pressure.Normal)},
	}
	if cfg.Cover {
		c.cover = &cover{}
	}
	if c.lines == nil {
		c.lines = new(line.Lines)
	}
	c.leases = lane.NewLeases(c.owner, c.give)
	c.owner.OnHome(c.hold)
	c.SetSettings(Settings{Budget: cfg.Budget, Exact: cfg.Exact})
	return c
}

// Alloc serves a request that no magazine served, or says how many pages it needs. Precondition:
// 0 < bytes, and the units fit an uint32.
func (c *Core) Alloc(bytes int64, hint int) (s *magazine.Slot, needPages uint32) {
	units := sizeclass.Units(bytes)
	if c.counting {
		return c.allocExact(uint32(units))
	}
	cameBack := false
	if c.owner.HasFreed() || c.Waits() { // else the call is spared
		cameBack = c.takeHome(c.owner.Freed(), uint32(units))
	}
	if c.owner.HasUsed() {
		c.sortUsed(!c.wanted.on)
	}
	if c.ebb.due(c.usedUnits(), c.misses.Turns) {
		c.sweep()
	}
	if units <= sizeclass.MaxUnits {
		s, needPages = c.allocSmall(sizeclass.Of(units), hint)
	} else {
		s, needPages = c.allocLarge(uint32(units), hint, cameBack)
	}
	if s == nil && c.sortUsed(false) { // the uses of some may be over
		s, needPages = c.allocUnits(uint32(units), hint)
	}
	if s != nil {
		c.notePeak()
	}
	return s, needPages
}

func (c *Core) allocUnits(units uint32, hint int) (s *magazine.Slot, needPages uint32) {
	if units <= sizeclass.MaxUnits {
		return c.allocSmall(sizeclass.Of(uint64(units)), hint)
	}
	return c.allocLarge(units, hint, false)
}

// Served counts a request by the level that served it.
func (c *Core) Served(byPool bool) {
	if !byPool {
		c.ServedHere()
		return
	}
	c.misses.Turns++
	c.byPool = true
	c.misses.Refill++
	c.upset()
}

// ServedHere is Served without the pool.
func (c *Core) ServedHere() {
	c.misses.Turns++
	c.byPool = false
	if c.misses.Turns >= c.calmAt {
		c.settleDown()
	}
}

// allocSmall serves a class from its magazines or a new span.
func (c *Core) allocSmall(class, hint int) (*magazine.Slot, uint32) {
	if c.wanted.on {
		return c.allocScarce(class)
	}
	for {
		m := c.owner.Spans.At(class, hint)
		if m == nil {
			var need uint32
			if m, need = c.supply(class); m == nil {
				return nil, need
			}
			c.owner.Spans.Install(m, hint)
		}
		if s := m.Take(); s != nil {
			c.owner.Spans.Shard(m, hint)
			return s, 0
		}
		// Exhausted, if need be by callers that had looked a fresh magazine up when it was in use before.
		c.owner.Spans.Park(m) // fails if a slot was freed this moment: then the next Take succeeds
	}
}

// supply is a magazine of the class with free slots, not installed; nil if the heap has no span for it.
func (c *Core) supply(class int) (m *magazine.Span, needPages uint32) {
	if m := c.owner.Spans.Ready(class); m != nil {
		return m, 0
	}
	span, need := c.takeBlock(sizeclass.SpanUnits(class))
	if span == heap.None {
		return nil, need
	}
	c.spanUnits += uint64(sizeclass.SpanUnits(class))
	m = c.owner.Spans.New(class, span, c.address(span))
	c.enter(span, nil, &m.Magazine)
	return m, 0
}

// allocLarge serves a request beyond the classes with a block of exactly its units.
func (c *Core) allocLarge(units uint32, hint int, cameBack bool) (*magazine.Slot, uint32) {
	bucket := magazine.BucketOf(uint64(units))
	m := c.owner.Exacts.At(bucket, hint)
	if m != nil && m.Units() == units {
		if s := m.Take(); s != nil {
			c.owner.Exacts.Shard(m, hint)
			return s, 0
		}
	}
	block := c.heap.Take(units)
	if block == heap.None {
		var need uint32
		if block, need = c.takeBlock(units); block == heap.None {
			return nil, need
		}
	}
	var s *magazine.Slot
	if t := &c.track[int(bucket)-magazine.FirstLarge]; cameBack && t.units == units {
		s = c.keep(t, units, hint)
	} else if !c.wanted.on {
		t.pass(units)
	}
	if s == nil {
		s = c.owner.Loose.Take()
	}
	s.Block, s.Units = block, units // settleIn, without the call
	s.SetAddress(c.address(block))
	if c.directory != nil {
		c.enter(block, s, nil)
	}
	return s, 0
}

// takeBlock takes units from the heap, closing magazines of large blocks until they fit.
func (c *Core) takeBlock(units uint32) (block int32, needPages uint32) {
	if block = c.heap.Take(units); block != heap.None {
		return block, 0
	}
	if c.makeRoom(units) {
		return c.heap.Take(units), 0
	}
	return heap.None, (units + c.pageUnits - 1) / c.pageUnits
}

func (c *Core) address(block int32) cudadrv.Ptr { return c.addressOf(c.heap.Offset(block)) }

// addressOf is the address of an offset.
func (c *Core) addressOf(offset uint32) cudadrv.Ptr {
	if c.places != nil {
		return c.placeOf(offset)
	}
	return c.base + cudadrv.Ptr(offset)<<sizeclass.UnitShift
}

// Drain takes the blocks back that callers handed over since the last turn.
func (c *Core) Drain() {
	c.drain()
	c.leases.Collect()
}

// drain takes home what callers handed over.
func (c *Core) drain() {
	c.takeHome(c.owner.Freed(), 0)
	c.sortUsed(false)
}

// sortUsed books the slots that callers handed over and other streams use, if there is a pile of them or, without pile,
// whatever there is. It reports whether there was anything.
func (c *Core) sortUsed(pile bool) bool {
	used, found := c.owner.Used(pile)
	if !found {
		return false
	}
	if c.leases.Lanes() > 0 {
		c.leases.Sift()
	}
	c.takeHome(used, 0)
	return true
}

// takeHome books slots that callers handed over, and reports whether a large block of that length was among them. What
// other streams still use becomes pending, and what they have finished with comes home.
func (c *Core) takeHome(s *magazine.Slot, units uint32) (cameBack bool) {
	c.wanted.came = c.wanted.came || s != nil && c.wanted.on
	for s != nil {
		next, plain := c.owner.Pass(s)
		switch {
		case plain != 0: // most of them
			cameBack = cameBack || plain == units
			if c.cover != nil || c.directory != nil { // giveLarge, without the calls
				c.giveFree(s.Block)
			} else {
				c.heap.Give(s.Block)
			}
			s.Block = heap.None
			c.owner.Loose.Put(s)
		case c.owner.Kept(s):
		default:
			cameBack = cameBack || s.Magazine().Span() == nil && s.Units == units
			c.comeHome(s)
		}
		s = next
	}
	if c.Waits() {
		c.settle()
	}
	return cameBack
}

// comeHome books a slot that came through the list and that nobody uses.
func (c *Core) comeHome(s *magazine.Slot) {
	m := s.Magazine()
	span := m.Span()
	if span == nil {
		c.giveLarge(s)
	}
	if e := m.Exact(); e != nil && e.Open && e.Kept(s) {
		c.keptUnits -= uint64(e.Units())
	}
	if c.owner.Home(s) {
		c.retire(span)
	}
}

// giveLarge takes home the block of a slot that has one of its own.
func (c *Core) giveLarge(s *magazine.Slot) {
	c.giveFree(s.Block)
	s.Block = heap.None
}

// retire gives the span of a closed magazine that is home whole back to the heap.
func (c *Core) retire(m *magazine.Span) {
	c.spanUnits -= uint64(sizeclass.SpanUnits(int(m.Class)))
	c.giveFree(c.owner.Spans.Retire(m))
}

// giveFree makes a block free that served somebody.
func (c *Core) giveFree(block int32) {
	if c.cover != nil {
		c.cameHome(block)
	}
	if c.directory != nil {
		c.directory.leave(block)
	}
	c.heap.Give(block)
}

// Undo gives back a block that was handed out by the Alloc which Served counted last, and that nobody
// will use: as if it had never been asked for.
func (c *Core) Undo(s *magazine.Slot) {
	c.PutBack(s)
	c.misses.Turns--
	if c.byPool {
		c.misses.Refill--
	}
}

// PutBack gives back a block that was handed out and that no caller has seen, whoever handed it out. No
// count of Served is taken back.
func (c *Core) PutBack(s *magazine.Slot) {
	if c.retract(s) {
		return
	}
	// Not by what Frees says before and after: a caller may take the block and free it as well between the two.
	if err := s.Free(s.Word()); !errors.Is(err, magazine.ErrBadFree) { // else the cache has ended: the block is freed all the same
		c.undone++
	}
}

// Grant adds a run that the pool lent.
func (c *Core) Grant(r Run) {
	if c.cover != nil { // they may have a later fence than the last that was left, also of a stream that this one waits for
		c.cover.open.add(r.First, r.First+r.Pages)
	}
	c.heap.Grant(r.First, r.Pages)
}

// Wait adds the units of a request to, or with a negative number takes them from, those that requests
// wait for. A request of no bytes does not count: it has no sign.
func (c *Core) Wait(bytes int64) {
	switch {
	case bytes < 0:
		c.waiting -= sizeclass.Units(-bytes)
	case bytes > 0:
		c.waiting += sizeclass.Units(bytes)
	}
}

// LiveBytes is what the stream cannot do without as things are: all that is not free in the heap, also
// what its magazines cache, and the requests that wait.
func (c *Core) LiveBytes() int64 {
	return int64(c.usedUnits()+c.waiting) << sizeclass.UnitShift
}

// usedUnits are in no free range.
func (c *Core) usedUnits() uint64 { return c.heap.HeldUnits() - c.heap.FreeUnits() }

// Close ends the magazines: what is free goes to the heap, what is live comes home one by one and wakes
// the owner. What lanes have comes home when they are closed. The pages stay until Return.
func (c *Core) Close() {
	c.endSlack()
	c.leases.Raise(lane.Ended)
	c.owner.Drain()
	c.Drain()
	c.evictAll()
	c.owner.Spans.Each(func(m *magazine.Span) {
		if !m.Open {
			return
		}
		c.owner.Spans.Close(m)
		if m.WholeHome() {
			c.retire(m)
		}
	})
}

// Return takes back what came home after Close and returns all whole pages.
func (c *Core) Return() []Run {
	c.Drain()
	return c.takePages(^uint32(0), false)
}

// Shut ends the magazines and nothing else: no caller is served any more, what is free or comes home stays
// where it is.
func (c *Core) Shut() {
	c.owner.LetTakeBack(0)
	c.leases.Raise(lane.Ended)
	c.owner.Spans.Each(c.owner.Spans.Close)
	c.owner.Exacts.Each(func(m *magazine.Exact) { c.owner.Exacts.Close(m, func(*magazine.Slot) {}) })
}

// End makes every later free say that the device is closed.
func (c *Core) End() {
	c.endSlack()
	c.leases.Raise(lane.Ended)
	c.owner.End()
}

// HeldBytes are those of the pages that the pool lent.
func (c *Core) HeldBytes() int64 { return int64(c.heap.HeldUnits() << sizeclass.UnitShift) }
