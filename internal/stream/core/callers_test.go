package core

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/leaks"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// crowd is a core with many callers: they take its turn one after the other, and otherwise allocate from
// magazines and free. Each caller claims its blocks unit by unit.
type crowd struct {
	bare
	turn   sync.Mutex
	first  uint32 // first page that was not lent yet
	owners []atomic.Int32
}

// alloc allocates as Stream.Alloc does, with unlimited pages. It reports whether the block was unclaimed.
func (c *crowd) alloc(caller int32, bytes int64) (h held, ok bool) {
	slot, word := c.cache.Take(bytes)
	if slot == nil {
		c.turn.Lock()
		var need uint32
		for slot, need = c.core.Alloc(bytes, magazine.Hint()); slot == nil; slot, need = c.core.Alloc(bytes, magazine.Hint()) {
			c.core.Grant(Run{First: c.first, Pages: need})
			c.first += need
		}
		c.core.Served(need > 0)
		word = slot.Word()
		c.turn.Unlock()
	}
	h = held{slot, word, uint32((slot.Address() - worldBase) >> sizeclass.UnitShift), blockUnits(bytes)}
	for u := h.from; u < h.from+h.units; u++ {
		if !c.owners[u].CompareAndSwap(0, caller) {
			return h, false
		}
	}
	return h, true
}

type held struct {
	slot        *magazine.Slot
	word        uint64
	from, units uint32
}

func (c *crowd) free(h held) error {
	for u := h.from; u < h.from+h.units; u++ {
		c.owners[u].Store(0)
	}
	return h.slot.Free(h.word)
}

// TestCallersNeverShareABlock lets callers allocate and free a few sizes while one of them releases now and
// then. No unit ever has two owners, no handle is refused, and all pages are returned.
func TestCallersNeverShareABlock(t *testing.T) {
	defer leaks.None(t)
	const callers, rounds, units = 4, 3000, 1 << 17
	c := &crowd{owners: make([]atomic.Int32, units)}
	c.cache = &magazine.Cache{}
	c.core = New(Config{Base: worldBase, PageBytes: 256 * kib}, c.cache, c)
	sizes := []int64{512, 512, 4 * kib, 40 * kib, 100 * kib, 100 * kib, 300 * kib}

	var failures atomic.Int32
	var all sync.WaitGroup
	for caller := range int32(callers) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(caller), 9))
			var mine []held
			drop := func(i int) {
				if c.free(mine[i]) != nil {
					failures.Add(1)
				}
				mine[i] = mine[len(mine)-1]
				mine = mine[:len(mine)-1]
			}
			for round := range rounds {
				if len(mine) > 20 || (len(mine) > 0 && r.IntN(2) == 0) {
					drop(r.IntN(len(mine)))
					continue
				}
				h, ok := c.alloc(caller+1, sizes[r.IntN(len(sizes))])
				if !ok {
					failures.Add(1)
					return
				}
				mine = append(mine, h)
				if caller == 0 && round%100 == 0 {
					c.release(t)
				}
			}
			for len(mine) > 0 {
				drop(0)
			}
		})
	}
	all.Wait()
	require.Zero(t, failures.Load())

	require.NoError(t, c.core.Check())
	s := c.core.Snapshot()
	assert.Zero(t, s.LiveCount)
	assert.Zero(t, s.LiveBytes)
	assert.Equal(t, s.AllocCount, s.FreeCount)
	c.core.Close()
	c.core.Return()
	assert.Zero(t, c.core.HeldBytes())
}

// release releases all pages that the core can, and grants them again.
func (c *crowd) release(t *testing.T) {
	t.Helper()
	c.turn.Lock()
	defer c.turn.Unlock()
	for _, r := range append([]Run(nil), c.core.Release(^uint32(0), false)...) {
		for u := r.First << 9; u < (r.First+r.Pages)<<9; u++ {
			if owner := c.owners[u].Load(); owner != 0 {
				t.Errorf("unit %d of caller %d was given up", u, owner)
			}
		}
		c.core.Grant(r)
	}
	if err := c.core.Check(); err != nil {
		t.Error(err)
	}
}
