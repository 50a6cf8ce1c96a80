package acceptance_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// tickPause is a little more than it takes until the ticker has come by.
const tickPause = 150 * time.Millisecond

// The level follows the used bytes, with its hysteresis; each change is reported, and statistics
// count the rises.
func TestPressureIsSeenAtTicks(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		var told []vram.PressureEvent
		h := openHouse(t, vram.Config{
			LimitBytes: 200 * mib, Events: vram.Events{Pressure: func(e vram.PressureEvent) { told = append(told, e) }},
		}, sim.Config{})
		s := h.stream()
		var live []vram.Buffer
		for _, c := range []struct {
			usedBytes int64
			level     vram.PressureLevel
		}{
			{160 * mib, vram.PressureNormal},
			{180 * mib, vram.PressureHigh},
			{160 * mib, vram.PressureHigh}, // not below 150
			{192 * mib, vram.PressureCritical},
			{182 * mib, vram.PressureCritical}, // not below 180
			{178 * mib, vram.PressureHigh},
			{140 * mib, vram.PressureNormal},
			{196 * mib, vram.PressureCritical},
			{0, vram.PressureNormal},
		} {
			usedBytes := 2 * mib * int64(len(live))
			for ; usedBytes < c.usedBytes; usedBytes += 2 * mib {
				live = append(live, must(t, s, 2*mib))
			}
			for ; usedBytes > c.usedBytes; usedBytes -= 2 * mib {
				freeAll(t, live[len(live)-1])
				live = live[:len(live)-1]
			}
			<-time.After(tickPause)
			synctest.Wait()
			assert.Equal(t, c.level, h.Stats().Pressure, "%d MiB are used", c.usedBytes/mib)
		}
		assert.Equal(t, uint64(3), h.Stats().PressureRises)
		require.NoError(t, h.Close())
		require.Len(t, told, 6)
		before := vram.PressureNormal
		for _, e := range told {
			assert.Equal(t, before, e.Before)
			assert.NotEqual(t, e.Before, e.Level)
			assert.Equal(t, 200*mib, e.LimitBytes)
			before = e.Level
		}
		assert.Equal(t, 180*mib, told[0].UsedBytes)
	})
}

// Under pressure an idle stream returns its cache within a few ticks, in place of a second or two,
// and another one is served without a reclaim request to it; with the mark at 1 there is no
// pressure.
func TestUnderPressureIdleStreamsGiveBack(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1))
	for mark, wantCached := range map[float64]int64{0: 0, 1: 10 * mib} {
		synctest.Test(t, func(t *testing.T) {
			h := openHouse(t, vram.Config{LimitBytes: 200 * mib, Tuning: vram.Tuning{PressureMark: mark}}, sim.Config{})
			idle, busy := h.stream(), h.stream()
			freeAll(t, must(t, idle, 10*mib))
			live := must(t, busy, 190*mib)
			<-time.After(5 * tickPause)
			synctest.Wait()
			n, err := idle.Stats(t.Context())
			require.NoError(t, err)
			assert.Equal(t, wantCached, n.CachedBytes)
			h.addsUp()
			freeAll(t, live)
		})
	}
}

// The mark can be changed while the device is in use.
func TestReconfigurePressure(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1))
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 200 * mib}, sim.Config{})
		b := must(t, h.stream(), 100*mib)
		level := func() vram.PressureLevel {
			<-time.After(tickPause)
			synctest.Wait()
			return h.Stats().Pressure
		}
		assert.Equal(t, vram.PressureNormal, level())
		require.NoError(t, h.Reconfigure(vram.Settings{Tuning: &vram.Tuning{PressureMark: 0.4}}))
		assert.Equal(t, vram.PressureHigh, level())
		require.NoError(t, h.Reconfigure(vram.Settings{Tuning: &vram.Tuning{PressureMark: 1}}))
		assert.Equal(t, vram.PressureNormal, level())
		require.NoError(t, h.Reconfigure(vram.Settings{LimitBytes: new(100 * mib), Tuning: &vram.Tuning{}}))
		assert.Equal(t, vram.PressureCritical, level())
		freeAll(t, b)
	})
}

// pressureLines is a Logger that keeps the lines of each level. The device's goroutines write while the test reads: a
// bubble's time orders them, the race detector knows no such order.
type pressureLines struct {
	mu          sync.Mutex
	info, debug []string // messages with the level
}

func (c *pressureLines) Warn(string, ...any)  {}
func (c *pressureLines) Error(string, ...any) {}

func (c *pressureLines) Info(msg string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.info = append(c.info, fmt.Sprint(msg, args[:4]))
}

func (c *pressureLines) Debug(msg string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.debug = append(c.debug, fmt.Sprint(msg, args[:4]))
}

// A device whose pressure swings all the time logs a line a minute, each swing for those who look for them, and calls
// Events.Pressure for each. A level that lasts is logged, also where it came within the minute.
func TestSwingsOfPressureAreLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, events := &pressureLines{}, atomic.Int64{}
		h := openHouse(t, vram.Config{LimitBytes: 100 * mib, Logger: log, Events: vram.Events{Pressure: func(e vram.PressureEvent) {
			assert.NotEqual(t, e.Before, e.Level, "it has changed")
			events.Add(1)
		}}}, sim.Config{})
		s := h.stream()
		about := func(lines *[]string) (n int, last string) {
			log.mu.Lock()
			defer log.mu.Unlock()
			for _, line := range *lines {
				if strings.HasPrefix(line, "vram: pressure") {
					n, last = n+1, line
				}
			}
			return n, last
		}
		const swings = 600 // of a second each
		for range swings {
			b := must(t, s, 98*mib)
			time.Sleep(500 * time.Millisecond) //nolint:forbidigo // time of the bubble
			freeAll(t, b)
			time.Sleep(500 * time.Millisecond) //nolint:forbidigo // time of the bubble
		}
		synctest.Wait()
		n, _ := about(&log.info)
		assert.LessOrEqual(t, n, 11)
		assert.Positive(t, n)
		debug, _ := about(&log.debug)
		assert.Greater(t, debug, swings)
		assert.GreaterOrEqual(t, events.Load(), int64(2*swings))

		time.Sleep(5 * time.Minute) //nolint:forbidigo // time of the bubble
		short := must(t, s, 98*mib)
		time.Sleep(time.Second) //nolint:forbidigo // time of the bubble
		freeAll(t, short)
		time.Sleep(5 * time.Minute) //nolint:forbidigo // time of the bubble
		synctest.Wait()
		_, last := about(&log.info)
		assert.Contains(t, last, "level normal", "of the change within the minute after it became critical")
	})
}
