package core

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// The largest live blocks are the first of a sorted list of all: in spans, in magazines and loose, after any
// frees.
func TestLargestIsAsASortedList(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 18))
		const pageBytes = int64(2 << 20)
		var cache magazine.Cache
		c := New(Config{Base: worldBase, PageBytes: pageBytes}, &cache, &world{})
		c.Grant(Run{First: 0, Pages: 200})
		var live []*magazine.Slot
		for range 300 {
			if len(live) > 0 && random.IntN(3) == 0 {
				at := random.IntN(len(live))
				require.NoError(t, live[at].Free(live[at].Word()))
				live = slices.Delete(live, at, at+1)
				continue
			}
			bytes := 1 + random.Int64N(int64(1)<<(8+random.IntN(13)))
			if slot, _ := cache.Take(bytes); slot != nil {
				live = append(live, slot)
			} else if slot, _ := c.Alloc(bytes, 0); slot != nil {
				live = append(live, slot)
			}
		}
		var l Largest
		c.Largest(&l, 7) // it collects what was freed
		var units []uint32
		c.Live(func(_ cudadrv.Ptr, bytes int64, _ *magazine.Slot) {
			units = append(units, uint32(bytes>>sizeclass.UnitShift))
		})
		require.Len(t, units, len(live))
		slices.SortFunc(units, func(a, b uint32) int { return cmp.Compare(b, a) })
		require.Equal(t, min(largestCount, len(units)), l.Count)
		for i, x := range l.Blocks[:l.Count] {
			require.Equal(t, units[i], x.Units, "seed %d, place %d of %v", seed, i, units[:largestCount])
			require.True(t, x.Slot.Live(x.Word))
			require.Equal(t, x.Slot.Address(), x.Ptr)
			require.EqualValues(t, 7, x.Stream)
			require.Contains(t, live, x.Slot)
		}
		require.False(t, l.Partial)
	}
}

// A visit of a stream with very many blocks stops early, and the list reports that.
func TestLargestLooksAtSoManyBlocks(t *testing.T) {
	t.Parallel()
	var cache magazine.Cache
	c := New(Config{Base: worldBase, PageBytes: 2 << 20, Exact: true}, &cache, &world{}) // each block is loose
	c.Grant(Run{First: 0, Pages: 64})
	for range mostLooked + 1000 {
		slot, _ := c.Alloc(512, 0)
		require.NotNil(t, slot)
	}
	var l Largest
	c.Largest(&l, 1)
	require.True(t, l.Partial)
	require.Equal(t, largestCount, l.Count)
}

// A freed block that another stream still uses is not live: no list has it.
func TestLiveHasNoPendingBlocks(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{kib, 300 * kib, 5 * 1024 * kib} {
		w := newWorld(t, 512, Budget{})
		_, lines := newLines(t, w, 2)
		stays, goes := w.alloc(bytes, 0, w.always), w.alloc(bytes, 0, w.always)
		require.NotNil(t, lines.At(0))
		require.NoError(t, goes.slot.Record(goes.word, 0))
		require.NoError(t, goes.slot.Free(goes.word))
		var live []*magazine.Slot
		w.core.Live(func(_ cudadrv.Ptr, _ int64, s *magazine.Slot) { live = append(live, s) })
		require.Positive(t, w.core.PendingBytes())
		require.Equal(t, []*magazine.Slot{stays.slot}, live)
		var l Largest
		w.core.Largest(&l, 1)
		require.Equal(t, 1, l.Count)
		require.Equal(t, stays.slot, l.Blocks[0].Slot)
	}
}
