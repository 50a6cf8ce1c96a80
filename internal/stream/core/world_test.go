package core

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// The arena of the tests starts somewhere that is not 0 and is as long as its units fit into an array.
const (
	worldBase  cudadrv.Ptr = 0x7f0000000000
	worldUnits             = 1 << 16
)

// The owner of a unit of the arena; from 1 on it is a buffer's number.
const (
	foreign int32 = -1 // not lent to the core
	nobody  int32 = 0
)

// buffer is a caller's buffer, live or freed, and the reference's record of it.
type buffer struct {
	number int32
	slot   *magazine.Slot
	word   uint64
	from   uint32 // the first unit
	units  uint32
	frees  uint64 // of the slot when it was handed out
}

// world is a core, the callers of its cache, a simple source of pages, and the reference: one owner for each
// unit of the arena.
type world struct {
	t         require.TestingT
	core      *Core
	cache     *magazine.Cache
	pageUnits uint32
	owners    [worldUnits]int32

	live  []*buffer // in the order of their allocation
	parts []*buffer // of a batch that has no answer
	dead  []*buffer // the last that were freed

	numbers                    int32
	liveUnits                  uint64
	allocs, frees, byPool, own uint64 // own: served in the turn, without the pool
	heldPages                  uint32
	wakes                      int
	piles                      int
	takenBack                  int
	closed                     bool
}

// Wake implements magazine.Waker.
func (w *world) Wake() { w.wakes++ }

// Piled implements magazine.Waker.
func (w *world) Piled() { w.piles++ }

// Refused implements magazine.Waker.
func (*world) Refused() {}

// Freed implements Waker.
func (*world) Freed() {}

func newWorld(t require.TestingT, pageUnits uint32, budget Budget) *world {
	w := &world{t: t, cache: &magazine.Cache{}, pageUnits: pageUnits}
	w.core = New(Config{Base: worldBase, PageBytes: int64(pageUnits) << sizeclass.UnitShift, Budget: budget}, w.cache, w)
	for u := range w.owners {
		w.owners[u] = foreign
	}
	return w
}

// blockUnits returns the length of the block for a request of that many bytes.
func blockUnits(bytes int64) uint32 {
	units := sizeclass.Units(bytes)
	if units <= sizeclass.MaxUnits {
		return sizeclass.BlockUnits(sizeclass.Of(units))
	}
	return uint32(units)
}

// alloc asks the cache and then the core, as a stream does.
func (w *world) alloc(bytes int64, hint int, source func(need uint32) bool) *buffer {
	if slot, word := w.cache.Take(bytes); slot != nil {
		return w.book(slot, word, bytes)
	}
	if slot, word := w.cache.TakeBack(bytes); slot != nil {
		w.takenBack++
		return w.book(slot, word, bytes)
	}
	return w.serve(bytes, hint, source)
}

// serve asks the core, and source for pages if it needs some. It returns nil if source refused.
func (w *world) serve(bytes int64, hint int, source func(need uint32) bool) *buffer {
	var slot *magazine.Slot
	waited := false
	var need uint32
	if slot, need = w.core.Alloc(max(bytes, 1), hint); slot != nil {
		require.Zero(w.t, need, "a request that is served needs no pages")
	} else {
		waited = true
		require.Positive(w.t, need)
		require.GreaterOrEqual(w.t, uint64(need)*uint64(w.pageUnits), sizeclass.Units(bytes))
		before := w.core.LiveBytes()
		w.core.Wait(bytes)
		if source(need) {
			require.Equal(w.t, before+waiting(bytes), w.core.LiveBytes())
			w.core.Wait(-bytes)
			slot, _ = w.core.Alloc(max(bytes, 1), hint)
			require.NotNil(w.t, slot, "%d pages side by side do not serve the request that needed them", need)
		} else {
			w.core.Wait(-bytes)
		}
		require.Zero(w.t, w.core.usage.waitingUnits)
		if slot == nil {
			return nil
		}
	}
	w.core.Served(waited)
	if waited {
		w.byPool++
	} else {
		w.own++
	}
	return w.book(slot, slot.Word(), bytes)
}

// waiting returns how much a request of that many bytes adds to the live bytes while it waits.
func waiting(bytes int64) int64 {
	if bytes == 0 {
		return 0
	}
	return int64(sizeclass.Units(bytes)) << sizeclass.UnitShift
}

// book books a block that was handed out: it must be unowned, of the right length and aligned.
func (w *world) book(slot *magazine.Slot, word uint64, bytes int64) *buffer {
	units := blockUnits(bytes)
	if slot.Magazine().Loose() { // exact counting gives a small one its own length, a batch a class's
		require.Contains(w.t, []uint32{units, uint32(sizeclass.Units(max(bytes, 1)))}, slot.Units)
		units = slot.Units
	}
	return w.bookUnits(slot, word, units)
}

func (w *world) bookUnits(slot *magazine.Slot, word uint64, units uint32) *buffer {
	w.numbers++
	offset := uint64(slot.Address() - worldBase)
	require.Zero(w.t, offset%sizeclass.UnitBytes)
	b := &buffer{w.numbers, slot, word, uint32(offset >> sizeclass.UnitShift), units, slot.Frees()}
	w.move(b.from, b.from+b.units, nobody, b.number)
	require.True(w.t, slot.Live(word))
	w.live = append(w.live, b)
	w.liveUnits += uint64(b.units)
	w.allocs++
	return b
}

// hoard allocates so many buffers of a length that stay in its magazine when freed, if possible: the magazine
// has proved its worth, and two of three are freed immediately, so that the length keeps recurring.
func (w *world) hoard(count int, bytes int64, hint int, source func(need uint32) bool) {
	w.repeat(heatKept+worthHits+4, bytes, hint, source)
	for range count {
		for range 2 {
			b := w.alloc(bytes, hint, source)
			if b == nil {
				return
			}
			w.free(b)
		}
		if w.alloc(bytes, hint, source) == nil {
			return
		}
	}
}

// repeat allocates and frees a length often enough to be kept.
func (w *world) repeat(count int, bytes int64, hint int, source func(need uint32) bool) {
	for range count {
		b := w.alloc(bytes, hint, source)
		if b == nil {
			return
		}
		w.free(b)
	}
}

// free frees one buffer as its caller does.
func (w *world) free(b *buffer) {
	require.NoError(w.t, b.slot.Free(b.word))
	w.disown(b)
	w.frees++
}

// move changes the owner of units, which must all have the named one.
func (w *world) move(first, end uint32, from, to int32) {
	for u := first; u < end; u++ {
		if w.owners[u] != from {
			require.Equal(w.t, from, w.owners[u], "unit %d", u)
		}
		w.owners[u] = to
	}
}

// disown books a buffer that was freed.
func (w *world) disown(b *buffer) {
	w.move(b.from, b.from+b.units, b.number, nobody)
	w.liveUnits -= uint64(b.units)
	w.live = slices.DeleteFunc(w.live, func(l *buffer) bool { return l == b })
	if w.dead = append(w.dead, b); len(w.dead) > 64 {
		w.dead = w.dead[1:]
	}
}

// freeAgain frees a buffer a second time: refused, even if its slot has another owner.
func (w *world) freeAgain(b *buffer) {
	err := b.slot.Free(b.word)
	require.ErrorIs(w.t, err, magazine.ErrBadFree)
	want := magazine.ErrStale
	if b.slot.Frees() == b.frees+1 {
		want = magazine.ErrDoubleFree
	}
	require.ErrorIs(w.t, err, want)
}

// undo undoes the core's last allocation.
func (w *world) undo(b *buffer, byPool bool) {
	w.core.Undo(b.slot)
	w.disown(b)
	w.allocs--
	if byPool {
		w.byPool--
	} else {
		w.own--
	}
}

// grant lends the pages from first on, and reports whether all of them were available.
func (w *world) grant(first, pages uint32) bool {
	from, end := first*w.pageUnits, (first+pages)*w.pageUnits
	if end > worldUnits || slices.ContainsFunc(w.owners[from:end], func(o int32) bool { return o != foreign }) {
		return false
	}
	w.core.Grant(Run{First: first, Pages: pages})
	w.move(from, end, foreign, nobody)
	w.heldPages += pages
	return true
}

// lend lends contiguous pages where available, from a page on.
func (w *world) lend(from, pages uint32) bool {
	last := uint32(worldUnits) / w.pageUnits
	for i := range last {
		if w.grant((from+i)%last, pages) {
			return true
		}
	}
	return false
}

// back books pages that the core released: they were lent, and unowned.
func (w *world) back(runs []Run) (pages uint32) {
	for _, r := range runs {
		require.Positive(w.t, r.Pages)
		w.move(r.First*w.pageUnits, (r.First+r.Pages)*w.pageUnits, nobody, foreign)
		pages += r.Pages
	}
	w.heldPages -= pages
	return pages
}

// close closes the cache and releases the free memory.
func (w *world) close() {
	w.core.Close()
	w.closed = true
	w.back(w.core.Return())
}

// check compares the core's books with its own invariants and the reference.
func (w *world) check() {
	require.NoError(w.t, w.core.Check())
	s := w.core.Snapshot()
	held := int64(w.heldPages*w.pageUnits) << sizeclass.UnitShift
	live := int64(w.liveUnits) << sizeclass.UnitShift
	require.Equal(w.t, held, s.HeldBytes)
	require.Equal(w.t, held, w.core.HeldBytes())
	require.Equal(w.t, live, s.LiveBytes)
	require.Equal(w.t, held-live, s.CachedBytes+s.PendingBytes)
	require.GreaterOrEqual(w.t, s.PeakLiveBytes, live)
	require.Equal(w.t, uint64(len(w.live)), s.LiveCount)
	require.Equal(w.t, w.allocs, s.AllocCount)
	require.Equal(w.t, w.frees, s.FreeCount)
	require.Equal(w.t, w.byPool, s.RefillCount)
	require.Equal(w.t, w.own, s.RangeCount)
	w.checkCached(s)
	w.checkUse(held - s.RangeBytes)
	require.GreaterOrEqual(w.t, w.core.usage.peakUnits, w.core.usedUnits(), "the decisions' peak")
	require.NoError(w.t, w.core.Check(), "after the snapshot")
}

// checkUse compares the figures of the memory in use with the reference: parts are in use, and given to nobody.
func (w *world) checkUse(usedBytes int64) {
	parts, waits := int64(w.partUnits())<<sizeclass.UnitShift, int64(w.core.usage.waitingUnits)<<sizeclass.UnitShift
	require.Equal(w.t, usedBytes, w.core.UsedBytes())
	require.Equal(w.t, usedBytes+waits, w.core.LiveBytes())
	require.Equal(w.t, parts+waits, w.core.OpenBytes())
	require.Equal(w.t, usedBytes-parts-w.core.PendingBytes(), w.core.GivenBytes())
}

func (w *world) partUnits() (sum uint64) {
	for _, b := range w.parts {
		sum += uint64(b.units)
	}
	return sum
}

// checkLive compares the list of live blocks with the reference.
func (w *world) checkLive() {
	var got, want []uint64
	w.core.Live(func(p cudadrv.Ptr, bytes int64, _ *magazine.Slot) {
		got = append(got, uint64(p-worldBase)<<8|uint64(bytes)>>sizeclass.UnitShift)
	})
	for _, b := range slices.Concat(w.live, w.parts) { // a batch has its parts as a caller has buffers
		want = append(want, uint64(b.from)<<(sizeclass.UnitShift+8)|uint64(b.units))
	}
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(w.t, want, got)
	words := map[*magazine.Slot]uint64{}
	w.core.LiveHandles(func(_ int64, s *magazine.Slot, word uint64) { words[s] = word })
	require.Len(w.t, words, len(w.live)+len(w.parts))
	for _, b := range w.live {
		require.Equal(w.t, b.word, words[b.slot])
	}
}

// checkKept checks the books of the magazines of large blocks: with all buffers freed, the open ones hold the
// counted units, and no more than their limit once a lowered budget has been applied. One block may be longer
// than the limit.
func (w *world) checkKept() {
	for len(w.live) > 0 {
		w.free(w.live[0])
	}
	w.core.Drain()
	cached, _ := w.kept()
	assert.Equal(w.t, w.core.retention.units, cached)
	w.excess()
	w.core.Tick() // applies the level of pressure
	cached, most := w.kept()
	assert.Equal(w.t, w.core.retention.units, cached)
	budgetUnits := uint64(w.core.limits.budget.CacheBytes) >> sizeclass.UnitShift
	if budgetUnits > 0 {
		assert.LessOrEqual(w.t, cached, budgetUnits)
	} else {
		assert.LessOrEqual(w.t, cached, max(w.core.retention.limit(), most))
	}
}

// kept returns the units in open magazines of large blocks, and the longest block there.
func (w *world) kept() (cached, most uint64) {
	w.core.owner.Exacts.Each(func(m *magazine.Exact) {
		if m.FreeSlots() > 0 {
			cached += uint64(m.FreeSlots()) * uint64(m.Units())
			most = max(most, uint64(m.Units()))
		}
	})
	return cached, most
}

// finish frees everything, closes, and checks that every lent page is returned.
func (w *world) finish(closeFirst bool) {
	w.answer(false)
	if closeFirst && !w.closed {
		w.close()
		w.check()
	}
	for len(w.live) > 0 {
		wakes := w.wakes
		w.free(w.live[0])
		require.Equal(w.t, w.closed, w.wakes > wakes, "a block that comes home wakes a closed cache's owner")
	}
	if !w.closed {
		w.close()
	}
	w.back(w.core.Return())
	w.check()
	require.Zero(w.t, w.heldPages, "pages are lost")
	require.Zero(w.t, w.core.retention.units)
	require.Zero(w.t, w.core.spans.units)
}
