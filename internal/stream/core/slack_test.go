package core

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// For any frees and ticks, pressure and ends: all streams together have at most their part of the limit, none
// more than its frees of a tick require, and unused slack is returned.
func TestSlackKeepsWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var device Allowance
		var limit atomic.Int64
		const share = 1 << 16 // units of the device's limit that may be lent
		limit.Store(share * slackShare << sizeclass.UnitShift)
		cores, piles := make([]*Core, 3), make([]uint64, 3) // piles are the last that the magazines were told of
		for i := range cores {
			cores[i] = newWorld(t, 512, Budget{}).core
			s := &cores[i].inFlight.slack
			s.device, s.limit = &device, &limit
			tell := s.setPile
			piles[i], s.setPile = s.pileUnits(), func(units uint64) {
				piles[i] = units
				tell(units)
			}
		}
		sum, last := make([]uint64, len(cores)), make([]uint64, len(cores)) // freed in this tick; rest of earlier ticks
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			i := rapid.IntRange(0, len(cores)-1).Draw(t, "core")
			c := cores[i]
			s := &c.inFlight.slack
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			default:
				units := uint32(rapid.IntRange(1, 1<<24).Draw(t, "units"))
				c.inFlight.slack.follow(units)
				sum[i] += uint64(units)
			case 0:
				c.inFlight.tick()
				require.LessOrEqual(t, s.units, max(sum[i]/fencesPerTick, last[i]/2))
				sum[i], last[i] = 0, s.units
			case 1:
				c.Press()
				require.Zero(t, s.units)
				last[i] = 0
				c.inFlight.slack.follow(1 << 24)
				sum[i] += 1 << 24
				require.Zero(t, s.units, "until the next tick")
			case 2:
				c.endSlack()
				c.inFlight.slack.follow(1 << 24)
				require.Zero(t, s.units, "for good")
				sum[i], last[i] = 0, 0
			}
			require.LessOrEqual(t, s.units, max(sum[i]/fencesPerTick, last[i]))
			require.GreaterOrEqual(t, s.pileUnits(), uint64(magazine.PileUnits))
			require.Equal(t, s.pileUnits(), piles[i], "a free makes a pile of so many units be sorted")
			var lent uint64
			for _, c := range cores {
				lent += c.inFlight.slack.units
			}
			require.EqualValues(t, lent, device.units.Load())
			require.LessOrEqual(t, lent, uint64(share))
		}
		for _, c := range cores {
			for range 20 {
				c.inFlight.tick()
			}
		}
		require.Zero(t, device.units.Load())
	})
}

// Goroutines that take at once have as much as the device lends, and never more than its part of the limit.
func TestSlackAmongGoroutines(t *testing.T) {
	t.Parallel()
	const goroutines, share = 3, 100
	for range 500 {
		var device Allowance
		var taken, ready atomic.Int64
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for ready.Add(1); ready.Load() < goroutines; {
					runtime.Gosched()
				}
				for {
					units := device.take(7, share*slackShare<<sizeclass.UnitShift)
					if units == 0 {
						return
					}
					taken.Add(int64(units)) //nolint:gosec // a few
				}
			})
		}
		all.Wait()
		require.EqualValues(t, share, taken.Load())
		require.EqualValues(t, share, device.units.Load())
	}
}

// A stream that frees little has the minimum slack, one that frees much has a fence's share, and a lowered
// limit grants no more.
func TestSlackFollowsWhatIsFreed(t *testing.T) {
	t.Parallel()
	var device Allowance
	var limit atomic.Int64
	limit.Store(64 << 30)
	c := newWorld(t, 512, Budget{}).core
	c.inFlight.slack.device, c.inFlight.slack.limit = &device, &limit
	s := &c.inFlight.slack
	for range 200 {
		c.inFlight.slack.follow(16 << 20 >> sizeclass.UnitShift)
	}
	assert.Zero(t, s.units)
	for range 20000 {
		c.inFlight.slack.follow(16 << 20 >> sizeclass.UnitShift)
	}
	assert.InEpsilon(t, 20200*16<<20>>sizeclass.UnitShift/fencesPerTick, s.units, 0.125)
	assert.Less(t, s.pileUnits(), s.units, "some is left for what is freed until the fence has passed")
	limit.Store(1 << 30)
	had := s.units
	for range 200000 {
		c.inFlight.slack.follow(16 << 20 >> sizeclass.UnitShift)
	}
	assert.Equal(t, had, s.units)
	c.inFlight.tick()
	assert.Equal(t, had, s.units, "it was used")
	c.inFlight.tick()
	assert.Equal(t, had/2, s.units, "it was not")
}

// Blocks that the slack covered need a fence once a tick, pressure or the end of the stream has taken that slack: the next check
// finds them. A tick that takes none makes no check.
func TestBlocksNeedAFenceOnceTheirSlackIsGone(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(c *Core){
		"a tick": func(c *Core) { c.inFlight.tick() }, "pressure": func(c *Core) { c.Press() }, "the end": func(c *Core) { c.endSlack() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var device Allowance
			var limit atomic.Int64
			limit.Store(1 << 50)
			w := newWorld(t, 512, Budget{})
			newLines(t, w, 2)
			c := w.core
			s := &c.inFlight.slack
			s.device, s.limit = &device, &limit
			due := func() (visits int) {
				c.Due(false, func(*line.Line, uint64) bool {
					visits++
					return false
				})
				return visits
			}
			for range fencesPerTick {
				s.follow(magazine.PileUnits + 4*minSlack)
			}
			b := w.alloc(int64(magazine.PileUnits)<<sizeclass.UnitShift, 0, w.always)
			require.NotNil(t, b)
			require.NoError(t, b.slot.Record(b.word, 0))
			w.free(b)
			c.Drain()
			require.Greater(t, s.pileUnits(), uint64(magazine.PileUnits))
			require.Zero(t, due(), "it waits for a shared fence")
			c.inFlight.tick() // all of the slack was used
			require.Greater(t, s.pileUnits(), uint64(magazine.PileUnits))
			assert.False(t, c.inFlight.fresh, "nothing has changed")
			for range 64 {
				if s.pileUnits() == magazine.PileUnits {
					break
				}
				require.Zero(t, due())
				take(c)
			}
			assert.Equal(t, 1, due())
		})
	}
}

// A stream that closes returns its slack to the device, and so does one that ends without a close.
func TestAStreamThatClosesReturnsItsSlack(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world){"close": func(w *world) { w.close() }, "end": func(w *world) { w.core.End() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var device Allowance
			var limit atomic.Int64
			limit.Store(1 << 50)
			w := newWorld(t, 512, Budget{})
			s := &w.core.inFlight.slack
			s.device, s.limit = &device, &limit
			for range fencesPerTick {
				s.follow(2 * minSlack)
			}
			require.Positive(t, device.units.Load())
			end(w)
			assert.Zero(t, device.units.Load())
		})
	}
}

// The slack begins beyond the minimum, rises by an eighth at least, and is counted from each tick on.
func TestSlackRisesInSteps(t *testing.T) {
	t.Parallel()
	var device Allowance
	var limit atomic.Int64
	limit.Store(1 << 50)
	s := slack{device: &device, limit: &limit, setPile: func(uint64) {}}
	for range 2 {
		sum := uint64(0)
		follow := func(to uint64) uint64 { // what was freed since the tick
			for sum < to {
				units := uint32(min(to-sum, 1<<30)) //nolint:gosec // bounded
				s.follow(units)
				sum += uint64(units)
			}
			return s.units
		}
		const first = minSlack + 8
		assert.Zero(t, follow(fencesPerTick*(minSlack+1)-1))
		assert.EqualValues(t, minSlack+1, follow(fencesPerTick*(minSlack+1)))
		s.units, device.units = first, atomic.Int64{}
		device.units.Store(first)
		assert.EqualValues(t, first, follow(fencesPerTick*(first+first/8+1)-1))
		assert.EqualValues(t, first+first/8+1, follow(fencesPerTick*(first+first/8+1)))
		s.press()
		s.tick()
	}
	assert.Zero(t, device.units.Load())
}
