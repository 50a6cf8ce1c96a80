package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
)

// idleAfter ticks until a core counts as idle, and returns the number of ticks.
func idleAfter(w *world) (ticks int) {
	for ; !w.core.Idle(); ticks++ {
		require.Less(w.t, ticks, 100)
		w.back(w.core.Decay(false))
		w.core.Tick()
	}
	return ticks
}

// An idle core releases half of its free pages at each tick, and then everything: magazines, and unused
// spans.
func TestAnIdleCoreDecays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4096, Budget{})
	source := func(need uint32) bool { return w.lend(0, need) }
	w.repeat(heatKept+4, 4*mib, 0, source) // keeps a magazine
	small := w.alloc(100, 0, source)
	var large []*buffer
	for range 4 {
		large = append(large, w.alloc(4*mib, 0, source))
	}
	w.free(small)
	for _, b := range large {
		w.free(b)
	}
	assert.Equal(t, idleTicks+1, idleAfter(w), "the first tick sees the frees")
	var held []int64
	for range decayTicks + 1 {
		w.back(w.core.Decay(false))
		held = append(held, w.core.HeldBytes())
		w.core.Tick()
	}
	for i := 1; i < len(held); i++ {
		assert.LessOrEqual(t, held[i], held[i-1])
	}
	assert.Positive(t, held[0], "half of it stays")
	assert.Zero(t, held[len(held)-1])
	assert.Empty(t, w.core.Decay(false), "nothing is left")
	w.finish(true)
}

// At each tick an idle core releases half of its free pages, rounded up, and so its last one, too.
func TestAnIdleCoreReleasesHalf(t *testing.T) {
	t.Parallel()
	for pages := range uint32(6) {
		w := newWorld(t, 4096, Budget{})
		if pages > 0 {
			w.free(w.alloc(int64(pages)*2*mib, 0, w.always))
		}
		require.EqualValues(t, pages*4096, w.core.ranges.heap.HeldUnits())
		for !w.core.Idle() {
			w.core.Tick()
		}
		assert.Equal(t, (pages+1)/2, w.back(w.core.Decay(false)), "%d pages", pages)
	}
}

// Pages that no fence covers stay at each tick of an idle core that releases covered ones alone, and leave once one covers them.
func TestAnIdleCoreKeepsUncoveredPages(t *testing.T) {
	t.Parallel()
	for _, covered := range []bool{false, true} {
		w := newWorld(t, 4096, Budget{})
		w.core.coverage.begin()
		w.free(w.alloc(16*mib, 0, w.always))
		w.core.Drain()
		if covered {
			w.core.Seal()
			w.core.Covered()
		}
		for !w.core.Idle() {
			w.core.Tick()
		}
		var released []uint32
		for range decayTicks + 1 {
			released = append(released, w.back(w.core.Decay(true)))
			w.core.Tick()
		}
		if covered {
			assert.EqualValues(t, 4, released[0], "half")
			assert.Zero(t, w.core.HeldBytes())
		} else {
			assert.Equal(t, make([]uint32, decayTicks+1), released)
			assert.Equal(t, 16*mib, int(w.core.HeldBytes()))
		}
	}
}

// A core that keeps its pages gives none back, and offers none, until it need not keep them any more.
func TestACoreThatKeepsItsPagesOffersNone(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{true, false} {
		for name, release := range map[string]func(c *Core) []Run{
			"Release":     func(c *Core) []Run { return c.Release(8, false) },
			"ReleaseSome": func(c *Core) []Run { return c.ReleaseSome(1, false) },
			"Return":      (*Core).Return,
			"Decay": func(c *Core) []Run {
				for !c.Idle() {
					c.Tick()
				}
				return c.Decay(false)
			},
		} {
			w := newWorld(t, 4096, Budget{})
			w.free(w.alloc(16*mib, 0, w.always))
			w.core.Drain()
			w.core.Keep(keeps)
			pages, longest := w.core.NoteFree()
			assert.Equal(t, keeps, pages == 0 && longest == 0, name)
			assert.Equal(t, keeps, len(release(w.core)) == 0, name)
			assert.Equal(t, keeps, w.core.HeldBytes() == 16*mib, name)
		}
	}
}

// Every event restarts the count, also an allocation and a free in a magazine that leave its mask unchanged.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	for name, live := range map[string]func(w *world, source func(uint32) bool){
		"a magazine": func(w *world, source func(uint32) bool) {
			before := w.core.Snapshot().RangeCount
			w.free(w.alloc(100, 0, source))
			assert.Equal(w.t, before, w.core.Snapshot().RangeCount, "no turn was taken")
		},
		"a magazine of large blocks": func(w *world, source func(uint32) bool) {
			before := w.core.Snapshot().RangeCount
			w.free(w.alloc(mib, 0, source))
			assert.Equal(w.t, before, w.core.Snapshot().RangeCount, "no turn was taken")
		},
		"a turn":    func(w *world, source func(uint32) bool) { w.free(w.alloc(3*mib+512, 0, source)) },
		"a grant":   func(w *world, _ func(uint32) bool) { w.lend(0, 1) },
		"a free":    func(w *world, _ func(uint32) bool) { w.free(w.live[0]) },
		"a release": func(w *world, _ func(uint32) bool) { w.back(w.core.Release(1, false)) },
		"a release and a free of as much": func(w *world, _ func(uint32) bool) {
			free := w.core.ranges.heap.FreeUnits()
			w.free(w.live[1])
			w.core.Drain()
			w.back(w.core.takeOut(1, false))
			assert.Equal(w.t, free, w.core.ranges.heap.FreeUnits())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4096, Budget{})
			source := func(need uint32) bool { return w.lend(0, need) }
			w.alloc(5*mib, 0, source)
			w.alloc(2*mib, 0, source)
			w.free(w.alloc(8*mib, 0, source))
			w.free(w.alloc(100, 0, source))
			w.repeat(heatKept+4, mib, 0, source)
			w.core.Tick()
			for range idleTicks - 1 {
				w.core.Tick()
			}
			live(w, source)
			w.core.Tick()
			assert.False(t, w.core.Idle())
			assert.Equal(t, idleTicks, idleAfter(w))
			w.finish(true)
		})
	}
}

// untilSpent ticks until an idle core has released all that it can.
func (w *world) untilSpent() {
	for ticks := 0; !w.core.idle.spent; ticks++ {
		require.Less(w.t, ticks, 100)
		w.core.Tick()
		w.back(w.core.Decay(false))
	}
}

// An idle core that has released all that it could also releases what callers free later, whichever magazine it is
// in, and with a pause of any length between the frees.
func TestAnIdleCoreReleasesWhatIsFreedLater(t *testing.T) {
	t.Parallel()
	const bytes = 512
	slots := int(sizeclass.SpanBlocks(0))
	for name, c := range map[string]struct {
		live   int          // buffers of the span
		before func(*world) // before the core is idle
		open   func(*world) // its magazine is in this state
	}{
		"a magazine that serves": {1, func(*world) {}, func(w *world) {
			assert.NotNil(w.t, w.core.owner.Spans.At(0, 0))
		}},
		"a magazine that waits until it serves": {2, func(w *world) {
			w.core.SetWanted(true)
			w.core.SetWanted(false)
		}, func(w *world) {
			assert.Nil(w.t, w.core.owner.Spans.At(0, 0))
		}},
		"a full magazine": {slots, func(w *world) {
			w.free(w.alloc(bytes, 0, w.always)) // in another one
		}, func(w *world) {
			assert.Zero(w.t, w.live[0].slot.Magazine().FreeSlots())
		}},
		"a block of its own": {0, func(w *world) { w.alloc(mib+bytes, 0, w.always) }, func(*world) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 512, Budget{})
			for range c.live {
				w.alloc(bytes, 0, w.always)
			}
			c.before(w)
			c.open(w)
			for len(w.live) > 0 {
				w.untilSpent()
				assert.Positive(t, w.core.HeldBytes())
				w.free(w.live[0])
				w.core.Tick()
				assert.False(t, w.core.Idle(), "a free is an event")
			}
			w.untilSpent()
			assert.Zero(t, w.core.HeldBytes())
			w.finish(true)
		})
	}
}

// What callers free while an idle core releases the rest leaves, too.
func TestAnIdleCoreReleasesWhatIsFreedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	last := w.alloc(512, 0, w.always)
	w.free(w.alloc(mib, 0, w.always))
	for !w.core.Idle() {
		w.core.Tick()
	}
	for range decayTicks {
		w.core.Tick()
	}
	w.core.onReturn = append(w.core.onReturn, func(Run) {
		if last != nil {
			w.free(last)
			last = nil
		}
	})
	assert.NotEmpty(t, w.back(w.core.Decay(false)))
	assert.Nil(t, last)
	assert.Positive(t, w.core.HeldBytes(), "the span was in use when the core looked")
	w.untilSpent()
	assert.Zero(t, w.core.HeldBytes())
	w.finish(true)
}
