package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
)

// churn allocates and frees lengths that do not recur until the core has counted so many turns.
func (w *world) churn(turns uint64) {
	for i := int64(0); w.core.misses.Turns < turns; i++ {
		w.free(w.alloc(256*kib+i%64*sizeclass.UnitBytes, 0, w.always))
	}
}

// swell makes the peak so high that all later use is quiescent.
func (w *world) swell() { w.free(w.alloc(12<<20, 0, w.always)) }

// takesBack reports whether a block that was just freed is handed out again without a turn.
func (w *world) takesBack(bytes int64) bool {
	before := w.takenBack
	w.free(w.alloc(bytes, 0, w.always))
	w.free(w.alloc(bytes, 0, w.always))
	w.check()
	return w.takenBack > before
}

// Blocks are reused directly once the pool was not needed for a while, until it is needed again.
func TestBlocksAreTakenBackWhileDemandIsStable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	w.swell()
	w.churn(stableTurns / 2)
	assert.False(t, w.takesBack(300*kib), "too early")
	w.churn(w.core.misses.stability.at)
	assert.True(t, w.takesBack(300*kib))
	assert.False(t, w.takesBack(int64(w.core.retention.limit()+1)<<sizeclass.UnitShift), "longer than a magazine may hold")

	turns, byPool := w.core.misses.Turns, w.byPool
	for w.byPool == byPool {
		w.alloc(300*kib, 0, w.always)
	}
	assert.GreaterOrEqual(t, w.core.misses.stability.at, 2*turns)
	assert.False(t, w.takesBack(310*kib), "the pool was needed")
	w.finish(true)
}

// With much live memory they are not, until much later.
func TestBlocksAreTakenBackOnceQuiescent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	for range 20 {
		w.alloc(400*kib, 0, w.always)
	}
	w.free(w.alloc(300*kib, 0, w.always)) // room for the next requests
	stableAt := w.core.misses.stability.at
	w.churn(stableAt + 100)
	assert.False(t, w.takesBack(260*kib), "too much lives")
	w.churn(stableAt*stableFactor + 1)
	assert.True(t, w.takesBack(260*kib))
	w.finish(true)
}

// While every free must wake the owner, none is reused directly.
func TestBlocksAreNotTakenBackWhereTheyMustBeSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	w.swell()
	w.churn(w.core.misses.stability.at + 1)
	assert.True(t, w.takesBack(300*kib))
	w.core.SetSettings(Settings{Exact: true})
	assert.False(t, w.takesBack(310*kib))
	w.churn(w.core.misses.stability.at + 1)
	assert.False(t, w.takesBack(320*kib))
	w.core.SetSettings(Settings{})
	w.churn(w.core.misses.stability.at + 1)
	assert.True(t, w.takesBack(330*kib))
	w.finish(true)
}

// A freed block is reused directly from the request on that is stableTurns after the one that last needed the pool, not before,
// once less than an eighth lives of the most that was ever in use, parts of batches included.
func TestBlocksAreTakenBackFromStableTurnsOn(t *testing.T) {
	t.Parallel()
	big := func(w *world) { w.swell() }
	for name, c := range map[string]struct{ swell, need, serve func(w *world) }{
		"single":  {big, func(w *world) { w.core.Served(true) }, func(w *world) { w.core.Served(false) }},
		"batches": {big, func(w *world) { w.core.ServedMany(0, 1) }, func(w *world) { w.core.ServedMany(1, 0) }},
		"part": {func(w *world) {
			require.True(w.t, w.lend(0, 48))
			w.core.PutBack(w.core.AllocPart(12 << 20))
		}, func(w *world) { w.core.Served(true) }, func(w *world) { w.core.Served(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 512, Budget{})
			c.swell(w)
			w.core.Drain()
			slot, _ := w.core.Alloc(300*kib, 0)
			require.NotNil(t, slot)
			c.need(w)
			require.NoError(t, slot.Free(slot.Word()))
			for range stableTurns - 1 {
				c.serve(w)
			}
			back, _ := w.cache.TakeBack(300 * kib)
			require.Nil(t, back)
			c.serve(w)
			back, _ = w.cache.TakeBack(300 * kib)
			require.Same(t, slot, back)
		})
	}
}
