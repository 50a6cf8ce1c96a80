package core

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

const kib, mib = 1 << 10, 1 << 20

// sizes are classes, recurring lengths, two of which share a bucket, and lengths that practically never
// recur.
func sizes() *rapid.Generator[int64] {
	a, b := collidingBytes()
	return rapid.OneOf(
		rapid.Int64Range(0, sizeclass.MaxBytes),
		rapid.SampledFrom([]int64{1, 512, 513, 4 * kib, 60 * kib, 64 * kib}),
		rapid.SampledFrom([]int64{64*kib + 1, 100 * kib, 256 * kib, mib, a, b}),
		rapid.Int64Range(sizeclass.MaxBytes+1, mib),
	)
}

// collidingBytes are two large sizes that share a bucket.
func collidingBytes() (a, b int64) {
	seen := map[int32]uint64{}
	for units := uint64(sizeclass.MaxUnits + 1); ; units++ {
		bucket := magazine.BucketOf(units)
		if other, ok := seen[bucket]; ok {
			return int64(other) << sizeclass.UnitShift, int64(units) << sizeclass.UnitShift
		}
		seen[bucket] = units
	}
}

// TestCoreFollowsTheReference takes random steps of callers, pool and owner, and after each compares the core
// with an array that names one owner for each unit.
func TestCoreFollowsTheReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pageUnits := rapid.SampledFrom([]uint32{128, 512, 4096}).Draw(t, "page units")
		w := newWorld(t, pageUnits, Budget{})
		size, hint := sizes(), rapid.IntRange(0, 2*magazine.Shards)
		source := func(need uint32) bool {
			if rapid.IntRange(0, 5).Draw(t, "refuse") == 0 {
				return false
			}
			from := rapid.Uint32Range(0, worldUnits/pageUnits-1).Draw(t, "from")
			return w.lend(from, need)
		}
		steps := map[string]func(*rapid.T){
			"": func(*rapid.T) { w.check() },
			"alloc": func(t *rapid.T) {
				w.alloc(size.Draw(t, "bytes"), hint.Draw(t, "hint"), source)
			},
			"alloc many": func(t *rapid.T) {
				bytes, h := size.Draw(t, "bytes"), hint.Draw(t, "hint")
				for range rapid.IntRange(2, 70).Draw(t, "count") {
					if w.liveUnits > worldUnits/2 || w.alloc(bytes, h, source) == nil {
						return
					}
				}
			},
			"batch": func(t *rapid.T) {
				bytes, most := max(1, size.Draw(t, "bytes")), rapid.IntRange(1, 90).Draw(t, "most")
				if w.liveUnits+uint64(most)*uint64(blockUnits(bytes)) < worldUnits/2 {
					w.batch(bytes, most, hint.Draw(t, "hint"), rapid.Bool().Draw(t, "put back"))
				}
			},
			"hold": func(t *rapid.T) {
				bytes, most := max(1, size.Draw(t, "bytes")), rapid.IntRange(1, 90).Draw(t, "most")
				if w.parts == nil && w.liveUnits+uint64(most)*uint64(blockUnits(bytes)) < worldUnits/2 {
					w.hold(bytes, most, hint.Draw(t, "hint"))
				}
			},
			"answer": func(t *rapid.T) { w.answer(rapid.Bool().Draw(t, "granted")) },
			"probe":  func(t *rapid.T) { w.probe(size.Draw(t, "bytes"), hint.Draw(t, "hint")) },
			"aligned": func(t *rapid.T) {
				align := int64(sizeclass.UnitBytes) << rapid.IntRange(0, 13).Draw(t, "align")
				w.aligned(max(1, size.Draw(t, "bytes")), align, source)
			},
			"repeat": func(t *rapid.T) { // until the length is kept
				bytes, h := size.Draw(t, "bytes"), hint.Draw(t, "hint")
				w.repeat(rapid.IntRange(heatKept, heatKept+12).Draw(t, "count"), bytes, h, source)
			},
			"serve": func(t *rapid.T) { // a parked request: the cache may have a block by now
				w.serve(size.Draw(t, "bytes"), hint.Draw(t, "hint"), source)
			},
			"free":      func(t *rapid.T) { w.freeSome(t, 1) },
			"free many": func(t *rapid.T) { w.freeSome(t, rapid.IntRange(2, 40).Draw(t, "count")) },
			"free again": func(t *rapid.T) {
				if len(w.dead) > 0 {
					w.freeAgain(w.dead[rapid.IntRange(0, len(w.dead)-1).Draw(t, "dead")])
				}
			},
			"announce": func(t *rapid.T) { // the free of it goes the slow way
				if len(w.live) > 0 {
					b := w.live[rapid.IntRange(0, len(w.live)-1).Draw(t, "live")]
					if err := b.slot.Announce(b.word, magazine.Announced); err != nil {
						t.Fatal(err)
					}
				}
			},
			"undo": func(t *rapid.T) {
				own, byPool := w.own, w.byPool
				b := w.alloc(size.Draw(t, "bytes"), hint.Draw(t, "hint"), source)
				if b != nil && (own != w.own || byPool != w.byPool) {
					w.undo(b, byPool != w.byPool)
				}
			},
			"grant": func(t *rapid.T) {
				w.lend(rapid.Uint32Range(0, worldUnits/pageUnits-1).Draw(t, "from"), rapid.Uint32Range(1, 3).Draw(t, "pages"))
			},
			"release": func(t *rapid.T) {
				limit := rapid.SampledFrom([]uint32{0, 1, 2, ^uint32(0)}).Draw(t, "limit")
				require.LessOrEqual(t, w.back(w.core.Release(limit, false)), limit)
			},
			"release longest": func(t *rapid.T) {
				w.back(w.core.ReleaseSome(rapid.SampledFrom([]uint32{1, 2, 9}).Draw(t, "pages"), false))
			},
			"surplus": func(*rapid.T) {
				w.back(w.core.Surplus(false))
				w.checkFree()
			},
			"budget": func(t *rapid.T) {
				w.core.SetBudget(budgets(t))
				w.excess()
			},
			"settings": func(t *rapid.T) {
				w.core.SetSettings(anySettings(t))
				w.excess()
			},
			"press": func(t *rapid.T) {
				w.core.SetPressure(anyLevel(t))
				w.excess()
			},
			"tick":   func(*rapid.T) { w.core.Tick() },
			"excess": func(*rapid.T) { w.excess() },
			"drain":  func(*rapid.T) { w.core.Drain() },
			"list":   func(*rapid.T) { w.checkLive() },
			"reset peak": func(*rapid.T) {
				w.core.ResetPeak()
			},
		}
		for range 3 { // rapid's own walks are short
			t.Repeat(steps)
		}
		w.finish(rapid.Bool().Draw(t, "close first"))
	})
}

func anySettings(t *rapid.T) Settings {
	return Settings{
		Budget:   budgets(t),
		Exact:    rapid.Bool().Draw(t, "exact"),
		AgeTicks: rapid.IntRange(0, 2).Draw(t, "age"),
	}
}

func anyLevel(t *rapid.T) pressure.Level {
	return pressure.Level(rapid.IntRange(0, pressure.LevelCount-1).Draw(t, "level"))
}

func budgets(t *rapid.T) Budget {
	return Budget{
		CacheBytes:  rapid.SampledFrom([]int64{0, 1, 300*kib + 5, mib, 4 * mib, 12 * mib}).Draw(t, "bytes"),
		CacheRanges: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "ranges"),
	}
}

// TestKeptBlocksFollowTheReference is the same with few recurring large sizes, so that their magazines open,
// share a bucket, fill, close while slots are in use, and open again.
func TestKeptBlocksFollowTheReference(t *testing.T) {
	t.Parallel()
	a, b := collidingBytes()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 512, Budget{})
		source := func(need uint32) bool { return w.lend(0, need) }
		size := rapid.SampledFrom([]int64{a, b, 70 * kib, 2 * mib, 9 * mib})
		steps := map[string]func(*rapid.T){
			"": func(*rapid.T) { w.check() },
			"hoard": func(t *rapid.T) {
				bytes := size.Draw(t, "bytes")
				most := max(1, worldUnits/4/int(blockUnits(bytes)))
				w.hoard(rapid.IntRange(1, min(most, 80)).Draw(t, "count"), bytes, 0, source)
			},
			"repeat": func(t *rapid.T) {
				w.repeat(rapid.IntRange(1, 20).Draw(t, "count"), size.Draw(t, "bytes"), 0, source)
			},
			"detach": func(t *rapid.T) {
				if len(w.live) > 0 {
					b := w.live[rapid.IntRange(0, len(w.live)-1).Draw(t, "live")]
					require.NoError(t, b.slot.Announce(b.word, magazine.Detached))
				}
			},
			"serve":     func(t *rapid.T) { w.serve(size.Draw(t, "bytes"), 0, source) },
			"free many": func(t *rapid.T) { w.freeSome(t, rapid.IntRange(1, 60).Draw(t, "count")) },
			"free all":  func(*rapid.T) { w.checkKept() },
			"budget": func(t *rapid.T) {
				w.core.SetBudget(budgets(t))
				w.excess()
			},
			"press":   func(t *rapid.T) { w.core.SetPressure(anyLevel(t)) },
			"tick":    func(*rapid.T) { w.core.Tick() },
			"excess":  func(*rapid.T) { w.excess() },
			"release": func(*rapid.T) { w.back(w.core.Release(^uint32(0), false)) },
		}
		for range 2 {
			t.Repeat(steps)
		}
		if rapid.Bool().Draw(t, "free first") {
			w.checkKept()
		}
		w.finish(rapid.Bool().Draw(t, "close first"))
	})
}

func (w *world) freeSome(t *rapid.T, count int) {
	for range count {
		if len(w.live) > 0 {
			w.free(w.live[rapid.IntRange(0, len(w.live)-1).Draw(t, "live")])
		}
	}
}

// TestUndoAfterTheEndCountsNothing undoes an allocation when frees already return that the device is closed.
func TestUndoAfterTheEndCountsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	b := w.alloc(100*kib, 0, w.always)
	w.core.End()
	w.undo(b, true)
	w.check()
}

// TestSpansHoldTheirBlocks carves a span of each class and uses all of it: the blocks lie in the span.
func TestSpansHoldTheirBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	for class := range sizeclass.Count {
		bytes := int64(sizeclass.BlockUnits(class)) << sizeclass.UnitShift
		first := w.alloc(bytes, 0, w.always)
		m := first.slot.Magazine()
		block := m.Span().Block
		span, end := w.core.heap.Offset(block), w.core.heap.Offset(block)+w.core.heap.Units(block)
		blocks := sizeclass.SpanBlocks(class)
		for i := range blocks {
			b := first
			if i > 0 {
				b = w.alloc(bytes, 0, func(uint32) bool { return false })
			}
			require.Same(t, m, b.slot.Magazine(), "class %d", class)
			require.LessOrEqual(t, span, b.from)
			require.LessOrEqual(t, b.from+b.units, end, "block %d of class %d", i, class)
		}
		require.NotSame(t, m, w.alloc(bytes, 0, w.always).slot.Magazine(), "class %d has more than %d blocks", class, blocks)
	}
	w.check()
	w.finish(false)
}
