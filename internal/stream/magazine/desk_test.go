package magazine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
)

const (
	regionUnits = 512 // of a block of the desk's heap: the longest span, and the longest buffer of these tests
	regionCount = 4096
	deskBase    = cudadrv.Ptr(1 << 40)
)

// desk runs the owner's side as internal/stream/core does, over a heap of regions that never runs out, and knows
// which units of it callers hold.
type desk struct {
	cache  Cache
	owner  *Owner
	turn   sync.Mutex // the turn of the stream's actor
	wakes  atomic.Int64
	frees  atomic.Int64 // that succeeded
	claims [regionCount * regionUnits / 64]atomic.Uint64

	// Of the turn.
	unused  []int32 // regions that came back
	last    int32   // the newest region
	out     int     // regions in use
	kept    []*Exact
	flagged int // slots collected with flags
	closed  bool
}

// handle is a caller's handle.
type handle struct {
	*Slot
	word uint64
}

func newDesk() *desk {
	d := new(desk)
	d.owner = NewOwner(&d.cache, wakes(func() { d.wakes.Add(1) }))
	d.owner.LetTakeBack(regionUnits)
	return d
}

func (d *desk) region() int32 {
	d.out++
	if n := len(d.unused); n > 0 {
		r := d.unused[n-1]
		d.unused = d.unused[:n-1]
		return r
	}
	d.last++
	if d.last == regionCount {
		panic("the tests need more regions than there are")
	}
	return d.last
}

func (d *desk) give(region int32) {
	d.out--
	d.unused = append(d.unused, region)
}

func regionBase(region int32) cudadrv.Ptr {
	return deskBase + cudadrv.Ptr(region)*regionUnits<<sizeclass.UnitShift
}

// alloc is Stream.Alloc: from a magazine, or else in the turn. It returns a handle without a slot once
// the desk is closed.
func (d *desk) alloc(bytes int64) (handle, error) {
	s, word := d.cache.Take(bytes)
	if s == nil {
		s, word = d.cache.TakeBack(bytes)
	}
	if s == nil {
		d.turn.Lock()
		defer d.turn.Unlock()
		d.drain()
		switch units := sizeclass.Units(bytes); {
		case d.closed:
			return handle{}, nil
		case units <= sizeclass.MaxUnits:
			s = d.small(sizeclass.Of(units), Hint())
		default:
			s = d.large(uint32(units), Hint())
		}
		word = s.Word()
	}
	h := handle{s, word}
	return h, d.claim(h)
}

// small serves a class from its magazines or a new span.
func (d *desk) small(class, hint int) *Slot {
	for {
		m := d.owner.Spans.At(class, hint)
		if m == nil {
			if m = d.owner.Spans.Ready(class); m == nil {
				r := d.region()
				m = d.owner.Spans.New(class, r, regionBase(r))
			}
			d.owner.Spans.Install(m, hint)
		}
		if s := m.Take(); s != nil {
			d.owner.Spans.Shard(m, hint)
			return s
		}
		d.owner.Spans.Park(m)
	}
}

// large serves a length from its magazine, or with a new block in a slot of it or in a loose one.
func (d *desk) large(units uint32, hint int) *Slot {
	bucket := BucketOf(uint64(units))
	if m := d.owner.Exacts.At(bucket, hint); m != nil && m.Units() == units {
		if s := m.Take(); s != nil {
			d.owner.Exacts.Shard(m, hint)
			return s
		}
	}
	m := d.owner.Exacts.Of(units)
	if !m.Open {
		if old := d.owner.Exacts.At(bucket, hint); old != nil {
			d.evict(old)
		}
		m.EachLive(func(s *Slot) { _ = s.Announce(s.Word(), Detached) })
		d.owner.Exacts.Reopen(m)
		d.owner.Exacts.Install(m, hint)
		d.kept = append(d.kept, m)
	}
	s := d.owner.Exacts.Assign(m)
	if s == nil || m.Attached() > 3 {
		if s != nil {
			m.homes |= 1 << s.index // a budget of three blocks a length
			m.attach &^= 1 << s.index
		}
		s = d.owner.Loose.Take()
	}
	s.Block, s.Units = d.region(), units
	s.SetAddress(regionBase(s.Block))
	return s
}

// eachFreed visits the slots that callers handed over.
func eachFreed(o *Owner, visit func(*Slot)) {
	take := func(s *Slot) {
		for s != nil {
			next := o.Next(s)
			visit(s)
			s = next
		}
	}
	take(o.Freed())
	take(o.Used(false))
}

// drain collects the slots that callers handed over.
func (d *desk) drain() {
	eachFreed(d.owner, func(s *Slot) {
		m := s.Magazine()
		if s.Flags() != 0 {
			d.flagged++
		}
		if m.Span() == nil {
			d.give(s.Block)
			s.Block = none
		}
		if d.owner.Collect(s) {
			d.give(d.owner.Spans.Retire(m.Span()))
		}
	})
}

// evict closes a magazine of large blocks.
func (d *desk) evict(m *Exact) {
	for i, k := range d.kept {
		if k == m {
			d.kept = append(d.kept[:i], d.kept[i+1:]...)
			break
		}
	}
	d.owner.Exacts.Close(m, func(s *Slot) {
		d.give(s.Block)
		s.Block = none
	})
}

// releaseUnused closes unused magazines, and gives their blocks back.
func (d *desk) releaseUnused() {
	d.drain()
	for len(d.kept) > 0 {
		d.evict(d.kept[0])
	}
	d.owner.Spans.Each(func(m *Span) {
		if m.Open && d.owner.Spans.CloseIdle(m) {
			d.give(d.owner.Spans.Retire(m))
		}
	})
}

// close closes everything for good.
func (d *desk) close() {
	d.closed = true
	d.owner.Drain()
	d.drain()
	for len(d.kept) > 0 {
		d.evict(d.kept[0])
	}
	d.owner.Spans.Each(func(m *Span) {
		if !m.Open {
			return
		}
		d.owner.Spans.Close(m)
		if m.WholeHome() {
			d.give(d.owner.Spans.Retire(m))
		}
	})
}

// live are the slots that the books call live.
func (d *desk) live() map[*Slot]bool {
	d.drain()
	found := map[*Slot]bool{}
	d.owner.All(func(m *Magazine) {
		before := len(found)
		m.EachLive(func(s *Slot) { found[s] = true })
		if len(found)-before != m.LiveSlots() {
			panic("LiveSlots and EachLive differ")
		}
	})
	return found
}

// check holds the regions against the books, and the frees that succeeded against the generations.
func (d *desk) check(t require.TestingT) {
	used := map[int32]bool{}
	book := func(region int32) {
		if region != none {
			require.False(t, used[region], "region %d is used twice", region)
			used[region] = true
		}
	}
	d.owner.All(func(m *Magazine) {
		if span := m.Span(); span != nil {
			book(span.Block)
		}
		m.Each(func(s *Slot) { book(s.Block) })
	})
	require.Len(t, used, d.out, "regions in use")
	var frees uint64
	d.owner.AddFrees(func(_ int, n uint64) { frees += n })
	require.EqualValues(t, d.frees.Load(), frees, "frees that succeeded")
}

// claim marks the units of a handle; it fails if somebody else holds one of them.
func (d *desk) claim(h handle) error {
	return d.eachWord(h, func(w *atomic.Uint64, bits uint64) error {
		if old := w.Or(bits); old&bits != 0 {
			return fmt.Errorf("block at %#x is held twice", h.Address())
		}
		return nil
	})
}

func (d *desk) unclaim(h handle) error {
	return d.eachWord(h, func(w *atomic.Uint64, bits uint64) error {
		if old := w.And(^bits); old&bits != bits {
			return fmt.Errorf("block at %#x was not held", h.Address())
		}
		return nil
	})
}

func (d *desk) eachWord(h handle, visit func(w *atomic.Uint64, bits uint64) error) error {
	units := uint64(h.Magazine().Units())
	if h.Magazine().Loose() {
		units = uint64(h.Units)
	}
	first := uint64(h.Address()-deskBase) >> sizeclass.UnitShift
	for u := first; u < first+units; u = u&^63 + 64 {
		bits := ^uint64(0) << (u & 63)
		if end := u&^63 + 64; end > first+units {
			bits &= ^uint64(0) >> (end - first - units)
		}
		if err := visit(&d.claims[u>>6], bits); err != nil {
			return err
		}
	}
	return nil
}

// free gives a handle back and counts it.
func (d *desk) free(h handle) error {
	if err := d.unclaim(h); err != nil {
		return err
	}
	return d.freeUnclaimed(h)
}

func (d *desk) freeUnclaimed(h handle) error {
	err := h.Free(h.word)
	if err == nil {
		d.frees.Add(1)
	}
	return err
}

// The desk that the tests below stand on serves, keeps its books and gives everything back.
func TestDeskServesAndBalances(t *testing.T) {
	d := newDesk()
	var held []handle
	for _, bytes := range []int64{1, 512, 1000, 4096, 65536, 65537, 100_000, 262_144} {
		for range 9 {
			h, err := d.alloc(bytes)
			require.NoError(t, err)
			held = append(held, h)
		}
	}
	require.Len(t, d.live(), len(held))
	for i, h := range held {
		require.NoError(t, d.free(h))
		require.Len(t, d.live(), len(held)-1-i)
		d.check(t)
	}
	d.releaseUnused()
	d.check(t)
	require.Zero(t, d.out)
}

// Next returns the slot that follows s in a list.
func (o *Owner) Next(s *Slot) *Slot { return o.home.slot(uint32(s.aside.Load())) }
