package core

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// batch asks the core for most blocks of a length, as a batch does, and books those that exist. putBack
// returns every second one unseen.
func (w *world) batch(bytes int64, most, hint int, putBack bool) int {
	w.core.Drain()
	var got []*magazine.Slot
	n := w.core.AllocMany(blockUnits(bytes), most, hint, func(s *magazine.Slot) { got = append(got, s) })
	require.Len(w.t, got, n)
	require.LessOrEqual(w.t, n, most)
	w.core.ServedMany(n, 0)
	w.own += uint64(n)
	if n < most { // no room for one more
		slot, _ := w.core.Alloc(int64(blockUnits(bytes))<<sizeclass.UnitShift, hint)
		require.Nil(w.t, slot, "%d of %d blocks of %d bytes, and there is room for more", n, most, bytes)
	}
	for i, s := range got {
		b := w.book(s, s.Word(), bytes)
		if putBack && i%2 == 1 {
			w.core.PutBack(s)
			w.disown(b)
			w.allocs--
			w.own--
			w.core.misses.Turns-- // undo without the count
		}
	}
	return n
}

// hold takes up to most blocks of a length as parts of a batch, which the next answer ends.
func (w *world) hold(bytes int64, most, hint int) {
	w.core.Drain()
	var sum PartSum
	before := len(w.live)
	w.core.AllocMany(blockUnits(bytes), most, hint, func(s *magazine.Slot) {
		sum.Add(w.book(s, s.Word(), bytes).units)
	})
	w.core.Parts().Book(&sum)
	w.parts = slices.Clone(w.live[before:])
	w.live = w.live[:before]
	w.liveUnits -= w.partUnits()
	w.allocs -= uint64(len(w.parts))
}

// answer grants the batch that holds parts, or refuses it.
func (w *world) answer(granted bool) {
	var sum PartSum
	for _, b := range w.parts {
		sum.Add(b.units)
	}
	w.core.Parts().Unbook(&sum)
	w.liveUnits += w.partUnits()
	w.live = append(w.live, w.parts...)
	if count := len(w.parts); granted && count > 0 {
		w.core.ServedMany(count, 0)
		w.own += uint64(count)
		w.allocs += uint64(count)
	} else {
		for _, b := range w.parts {
			w.core.PutBack(b.slot)
			w.disown(b)
		}
	}
	w.parts = nil
}

// probe asks whether the core has room, and then takes the block if it has: a probe changes no count and no peak.
func (w *world) probe(bytes int64, hint int) {
	find := func() *magazine.Slot {
		s, _ := w.core.Alloc(max(bytes, 1), hint)
		return s
	}
	w.core.Drain()
	peak := w.core.usage.givenPeak.Peak()
	found := w.core.Probe(find)
	require.Equal(w.t, peak, w.core.usage.givenPeak.Peak())
	w.check()
	s := find()
	require.Equal(w.t, s != nil, found)
	if found {
		w.core.Served(false)
		w.own++
		w.book(s, s.Word(), bytes)
	}
}

// A batch leaves the other blocks of the last span to its callers, to the last of them, also where the magazine before it is
// empty.
func TestABatchLeavesTheRestToCallers(t *testing.T) {
	t.Parallel()
	for class := range sizeclass.Count {
		blocks := int(sizeclass.SpanBlocks(class))
		bytes := int64(sizeclass.BlockUnits(class)) << sizeclass.UnitShift
		for _, first := range []int{0, 1, blocks} { // none, some, and all of a span
			for _, rest := range []int{0, 1, 2, blocks - 1} {
				w := newWorld(t, 4096, Budget{})
				require.True(t, w.lend(0, 4))
				for range first {
					w.alloc(bytes, 0, w.always)
				}
				w.hold(bytes, 2*blocks-first-rest, 0)
				w.answer(true)
				for left := range rest {
					s, word := w.cache.Take(bytes)
					require.NotNil(t, s, "class %d, %d first: the cache has no more than %d of %d", class, first, left, rest)
					w.book(s, word, bytes)
				}
				s, _ := w.cache.Take(bytes)
				require.Nil(t, s)
				w.check()
			}
		}
	}
}

// The blocks of the magazine before a batch serve again once they are free, whichever shard the batch uses: no span is lost.
func TestABatchLosesNoMagazine(t *testing.T) {
	t.Parallel()
	for class := range sizeclass.Count {
		blocks := int(sizeclass.SpanBlocks(class))
		bytes := int64(sizeclass.BlockUnits(class)) << sizeclass.UnitShift
		for hint := range 3 {
			w := newWorld(t, 4096, Budget{})
			require.True(t, w.lend(0, 4))
			w.alloc(bytes, hint, w.always)
			w.hold(bytes, 2*blocks-2, hint) // leaves one of the second span
			w.answer(true)
			spans := w.core.spans.units
			for len(w.live) > 0 {
				w.free(w.live[0])
			}
			w.hold(bytes, 2*blocks, hint)
			w.answer(true)
			require.Len(t, w.live, 2*blocks)
			require.Equal(t, spans, w.core.spans.units, "class %d, shard %d", class, hint)
			w.check()
		}
	}
}

// aligned asks for a block at a multiple of align, and source for the missing pages, twice if the first do
// not help.
func (w *world) aligned(bytes, align int64, source func(need uint32) bool) {
	slot, need := w.core.AllocAligned(bytes, align, false)
	byPool := slot == nil
	for wide := true; slot == nil; {
		require.GreaterOrEqual(w.t, uint64(need)*uint64(w.pageUnits), sizeclass.Units(bytes))
		if !source(need) {
			return
		}
		before := need
		if slot, need = w.core.AllocAligned(bytes, align, wide); slot == nil {
			require.GreaterOrEqual(w.t, uint64(need)*uint64(w.pageUnits), sizeclass.Units(bytes)+uint64(align>>sizeclass.UnitShift)-1,
				"%d pages did not help, and no more are asked for", before)
			require.Less(w.t, before, need, "a run that holds any place serves")
		}
	}
	require.Zero(w.t, int64(slot.Address())%align)
	w.core.Served(byPool)
	if byPool {
		w.byPool++
	} else {
		w.own++
	}
	w.bookUnits(slot, slot.Word(), uint32(sizeclass.Units(bytes))) // exact, also a short one
}
