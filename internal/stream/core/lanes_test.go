package core

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/stream/magazine/lane"
)

// tenant is a lane and what the reference knows of it.
type tenant struct {
	lane   *lane.Lane
	budget uint64 // units
	over   bool

	outcome lane.Outcome // of the free at hand
}

// AllocBeyond is what a lane calls.
func (l *tenant) AllocBeyond(int64) (*magazine.Slot, uint64, int64, error) { return nil, 0, 0, nil }

// AllocSampled is what a lane calls.
func (l *tenant) AllocSampled(s *magazine.Slot, handle uint64, bytes int64) (*magazine.Slot, uint64, int64, error) {
	return s, handle, bytes, nil
}

// FreeBeyond is what a lane calls.
func (l *tenant) FreeBeyond(_ *magazine.Slot, _ uint64, outcome lane.Outcome) error {
	l.outcome = outcome
	return nil
}

func (w *world) openLane(budgetUnits uint64) *tenant {
	l := &tenant{lane: new(lane.Lane), budget: budgetUnits}
	l.lane.Init(budgetUnits, l)
	if s, _ := l.lane.Take(512); s != nil {
		require.Fail(w.t, "a lane serves before it was opened")
	}
	w.core.OpenLane(l.lane)
	return l
}

// laneAlloc asks the lane, then the core for the lane, and then as any caller does.
func (w *world) laneAlloc(l *tenant, bytes int64) *buffer {
	s, word, _, err := l.lane.Alloc(bytes)
	require.NoError(w.t, err)
	if s == nil && !l.over {
		w.core.SettleLane(l.lane)
		if s, word = w.core.LaneAlloc(l.lane, max(bytes, 1)); s != nil {
			w.core.Served(false)
			w.own++
		}
	}
	if s == nil {
		return w.alloc(bytes, 0, w.always)
	}
	require.False(w.t, l.over)
	return w.book(s, word, bytes)
}

// laneFree frees a buffer, whose ever it is, through a lane.
func (w *world) laneFree(l *tenant, b *buffer) {
	l.outcome = lane.Kept
	require.NoError(w.t, l.lane.Free(b.slot, b.word))
	outcome := l.outcome
	if outcome == lane.Refused && !l.over {
		outcome = l.lane.FreeRaised(b.slot, b.word)
	}
	if outcome == lane.Refused {
		w.free(b)
		return
	}
	require.Equal(w.t, lane.Refused, l.lane.FreeRaised(b.slot, b.word), "freed twice")
	w.disown(b)
	w.frees++
	if outcome == lane.Surplus || l.lane.Raised() != 0 {
		w.core.SettleLane(l.lane)
	}
}

func (w *world) closeLane(l *tenant) {
	w.core.CloseLane(l.lane)
	l.over = true
	s, _ := l.lane.Take(512)
	require.Nil(w.t, s)
}

// Lanes, ordinary callers and the core's own work in any order: no unit has two owners, the books balance
// after each step, a lane whose buffers are all free keeps to its budget, and all pages come back.
func TestLanesAgainstAReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 512, Budget{})
		var lanes []*tenant
		size := rapid.Custom(func(t *rapid.T) int64 {
			few := rapid.SampledFrom([]int64{512, 2 * kib, 16 * kib, 64 * kib, 100 * kib, 300 * kib})
			return rapid.OneOf(
				few, few, rapid.Int64Range(0, sizeclass.MaxBytes), rapid.Int64Range(sizeclass.MaxBytes, 2*mib),
			).Draw(t, "bytes")
		})
		drawn := func(t *rapid.T) *tenant {
			if len(lanes) == 0 {
				lanes = append(lanes, w.openLane(rapid.SampledFrom([]uint64{0, 100, 700, 5000, 1 << 40}).Draw(t, "budget")))
			}
			return lanes[rapid.IntRange(0, len(lanes)-1).Draw(t, "lane")]
		}
		some := func(t *rapid.T, free func(*buffer)) {
			for range rapid.IntRange(1, 80).Draw(t, "count") {
				if len(w.live) > 0 {
					free(w.live[rapid.IntRange(0, len(w.live)-1).Draw(t, "live")])
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { w.check() },
			"open": func(t *rapid.T) {
				lanes = append(lanes, w.openLane(rapid.SampledFrom([]uint64{0, 100, 700, 5000, 1 << 40}).Draw(t, "budget")))
			},
			"close": func(t *rapid.T) { w.closeLane(drawn(t)) },
			"lane alloc": func(t *rapid.T) {
				l, bytes := drawn(t), size.Draw(t, "bytes")
				for range rapid.IntRange(1, 100).Draw(t, "count") {
					if w.liveUnits < worldUnits/2 {
						w.laneAlloc(l, bytes)
					}
				}
			},
			"alloc":     func(t *rapid.T) { w.alloc(size.Draw(t, "bytes"), 0, w.always) },
			"lane free": func(t *rapid.T) { l := drawn(t); some(t, func(b *buffer) { w.laneFree(l, b) }) },
			"free":      func(t *rapid.T) { some(t, w.free) },
			"free again": func(t *rapid.T) {
				if len(w.dead) > 0 {
					b := w.dead[rapid.IntRange(0, len(w.dead)-1).Draw(t, "dead")]
					require.Equal(t, lane.Refused, drawn(t).lane.FreeRaised(b.slot, b.word))
					w.freeAgain(b)
				}
			},
			"announce": func(t *rapid.T) {
				some(t, func(b *buffer) { require.NoError(t, b.slot.Announce(b.word, magazine.Announced)) })
			},
			"settings": func(t *rapid.T) {
				settings := anySettings(t)
				settings.Budget = Budget{} // its excess is for others
				w.core.SetSettings(settings)
			},
			"tick":    func(*rapid.T) { w.core.Tick() },
			"ask":     func(*rapid.T) { w.core.AskLanes() },
			"nudge":   func(*rapid.T) { w.core.NudgeLanes() },
			"release": func(*rapid.T) { w.back(w.core.Release(^uint32(0), false)) },
			"free all": func(t *rapid.T) {
				for i := 0; len(w.live) > 0; i++ {
					if l := drawn(t); i%2 == 0 {
						w.laneFree(l, w.live[0])
					} else {
						w.free(w.live[0])
					}
				}
				var most uint64
				for _, l := range lanes {
					w.core.SettleLane(l.lane)
					if !l.over {
						most += l.budget
					}
				}
				if most < 1<<40 {
					require.LessOrEqual(t, uint64(w.core.LaneBytes()), most<<sizeclass.UnitShift)
				}
			},
		})
		closeFirst := rapid.Bool().Draw(t, "close first")
		if closeFirst {
			w.close()
		}
		for _, l := range lanes {
			w.closeLane(l)
		}
		w.check()
		require.Zero(t, w.core.LaneBytes())
		require.Zero(t, w.core.Lanes())
		w.finish(closeFirst)
	})
}
