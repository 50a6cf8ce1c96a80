package core

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/together"
)

// Batches of goroutines that book their blocks while turns unbook others are in the books as long as they are booked, by size and in sum.
func TestPartsAmongGoroutines(t *testing.T) {
	t.Parallel()
	const goroutineCount, rounds = 4, 200
	var p Parts
	var turn sync.Mutex
	var kept [goroutineCount]PartSum
	together.Run(goroutineCount, func(number int) {
		for range rounds {
			var s PartSum
			for i := range uint32(4) {
				s.Add(1 + i*100)
			}
			p.Book(&s)
			kept[number].Add(700)
			var more PartSum
			more.Add(700)
			p.Book(&more)
			turn.Lock()
			p.Unbook(&s)
			p.Drop(300)
			turn.Unlock()
		}
	})
	const left = goroutineCount * rounds
	assert.EqualValues(t, left*700, p.Units())
	for i := range p.sizes {
		switch i {
		case magazine.SizeOf(700):
			assert.EqualValues(t, left, p.sizes[i].count.Load())
			assert.EqualValues(t, left*700, p.sizes[i].units.Load())
		default:
			assert.Zero(t, p.sizes[i].count.Load())
			assert.Zero(t, p.sizes[i].units.Load())
		}
	}
	assert.EqualValues(t, left, p.sizes[magazine.SizeOf(300)].unmade.Load())
	for i := range kept {
		p.Unbook(&kept[i])
	}
	assert.Zero(t, p.Units())
}

// Goroutines that take units and give them back never have more than the device lends, and leave nothing taken.
func TestSlackIsGivenBackAmongGoroutines(t *testing.T) {
	t.Parallel()
	const goroutineCount, rounds, share = 4, 300, 20
	var device Allowance
	var taken atomic.Int64
	together.Run(goroutineCount, func(int) {
		for range rounds {
			units := device.take(7, share*slackShare<<sizeclass.UnitShift)
			assert.LessOrEqual(t, taken.Add(int64(units)), int64(share)) //nolint:gosec // a few
			taken.Add(-int64(units))                                     //nolint:gosec // a few
			device.give(units)
		}
	})
	assert.Zero(t, device.units.Load())
}

// The gauge of a device is the sum of its streams' live bytes, also where these change at the same time.
func TestAGaugeAmongGoroutines(t *testing.T) {
	t.Parallel()
	const streams, rounds = 3, 60
	var gauge Gauge
	var worlds [streams]*world
	for i := range worlds {
		worlds[i] = newWorld(t, 512, Budget{})
		worlds[i].core.usage.gauge = &gauge
		worlds[i].core.SetSettings(Settings{Exact: true})
	}
	together.Run(streams, func(number int) {
		w, random := worlds[number], rand.New(rand.NewPCG(uint64(number), 1)) //nolint:gosec // a test
		source := func(need uint32) bool { return w.lend(0, need) }
		for range rounds {
			b := w.alloc([]int64{1, 5 * kib, 70 * kib, 2 * mib}[random.IntN(4)], 0, source)
			if b == nil {
				continue
			}
			w.free(b)
			w.core.Drain()
			if random.IntN(8) == 0 {
				w.alloc(600, 0, source)
			}
		}
	})
	var live int64
	for _, w := range worlds {
		w.core.Drain()
		live += int64(w.liveUnits) << sizeclass.UnitShift //nolint:gosec // a few
	}
	assert.Positive(t, live)
	assert.Equal(t, live, gauge.live.Load())
	assert.GreaterOrEqual(t, gauge.PeakBytes(), live)
	for _, w := range worlds {
		w.finish(false)
	}
}
