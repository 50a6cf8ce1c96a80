package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// TestCheckSeesWhatIsWrong breaks each part of the books once: the check names that part.
func TestCheckSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	type broken struct {
		*world
		small, loose, kept *buffer
	}
	for name, c := range map[string]struct {
		damage func(b broken)
		want   string
	}{
		"heap":           {func(b broken) { b.core.heap.Give(b.loose.slot.Block); b.core.heap.Give(b.loose.slot.Block) }, "heap: "},
		"free block":     {func(b broken) { b.core.heap.Give(b.loose.slot.Block) }, "units used and"},
		"lost block":     {func(b broken) { b.core.heap.Take(10) }, "units used and"},
		"pending blocks": {func(b broken) { b.core.inFlight.count++ }, "are pending"},
		"block of two slots": {func(b broken) {
			b.loose.slot.Block, b.loose.slot.Units = b.kept.slot.Block, b.kept.units
		}, "has two slots"},
		"length of a slot": {func(b broken) { b.loose.slot.Units++ }, "its slot says"},
		"span of two magazines": {func(b broken) {
			b.core.owner.Spans.New(0, b.small.slot.Magazine().Span().Block, 0)
		}, "has two slots"},
		"lost span": {func(b broken) { b.small.slot.Magazine().Span().Block = -1 }, "the directory has"},
		"spans":     {func(b broken) { b.core.spans.units -= sizeclass.MaxUnits }, "the books say"},
		"kept":      {func(b broken) { b.core.retention.units -= uint64(b.kept.units) }, "kept, the books say"},
		"out of reach": {func(b broken) {
			b.core.retention.recent.remove(b.kept.slot.Magazine().Exact())
		}, "in the list"},
		"closed one in the list": {func(b broken) { b.kept.slot.Magazine().Exact().Open = false }, "in the list"},
		"block without an entry": {func(b broken) { b.core.directory.leave(b.loose.slot.Block) }, "the directory has"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 512, Budget{})
			small := w.alloc(1000, 0, w.always)
			loose := w.alloc(100*kib, 0, w.always)
			w.hoard(1, 256*kib, 0, w.always)
			kept := w.live[2]
			w.alloc(300*kib, 0, w.always)
			w.core.Grant(Run{First: 100, Pages: 1})
			w.core.Lookup(worldBase) // from now on there is a directory
			require.NoError(t, w.core.Check())
			c.damage(broken{w, small, loose, kept})
			require.ErrorContains(t, w.core.Check(), c.want)
		})
	}
}

// The check finds an address in the directory whose page was returned, or is elsewhere.
func TestCheckSeesPagesThatAreElsewhere(t *testing.T) {
	t.Parallel()
	for want, damage := range map[string]func(c *Core){
		"which was returned": func(c *Core) { c.directory.pages[1<<31] = 1 },
		"which is at":        func(c *Core) { c.directory.pages[1<<40] = 0 },
	} {
		var cache magazine.Cache
		c := New(Config{PageBytes: 64 * kib, Places: []cudadrv.Ptr{1 << 30, 1 << 31, 1 << 32}}, &cache, &world{})
		c.Grant(Run{First: 0, Pages: 1})
		_, need := c.Alloc(100, 0)
		require.Zero(t, need)
		c.Lookup(1 << 30)
		require.NoError(t, c.Check())
		damage(c)
		assert.ErrorContains(t, c.Check(), want)
	}
}
