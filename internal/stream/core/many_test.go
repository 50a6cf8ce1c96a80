package core

import (
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
