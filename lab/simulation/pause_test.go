package simulation

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
)

// Where the work of a rest is refused, the handler of shortages may free a buffer of an adopted stream, whose pages stay until
// its callers use it again or call Trim. They call it, and only memory that nobody has freed since has to be old.
func TestARestBeginsAnewAfterAFree(t *testing.T) {
	var disturbed int // rests
	for seed := range uint64(40) {
		w := newWorld(seed, mutateNothing)
		w.step = int(seed) // the handler's choices depend on it
		if w.shape.segments || w.era.ahead {
			w.abandon()
			continue // free memory does not get old
		}
		w.do("open", func() { w.openStream(1, true) })
		working, adopted := w.era.streams[0], w.era.streams[len(w.era.streams)-1]
		require.True(t, adopted.adopted && !working.adopted && !w.capturedAny())
		bytes := max(w.shape.pageBytes, sizeclass.MaxBytes+1)
		w.do("take all", func() {
			for err := error(nil); err == nil; {
				b, refused := adopted.Alloc(bytes)
				if err = refused; err == nil {
					w.enter(adopted, b, bytes, 0)
				}
			}
		})
		liveCount := len(w.held)
		for c := range uint32(4) {
			w.pause(action{b: 8 * c, c: 2 * c}) // no spike
		}
		require.Nil(t, w.fault, "seed %d: %+v", seed, w.fault)
		require.EqualValues(t, 4, w.report.Rests)
		disturbed += min(1, liveCount-len(w.held))
		w.abandon()
	}
	assert.GreaterOrEqual(t, disturbed, 5)
}

// A freed buffer that an adopted stream used is pending from the turn that collects it, and no tick records the fence that it
// waits for. Callers have to record that fence before a rest, even if no turn has collected the buffer.
func TestARestBeginsWithTheFencesForUncollectedFrees(t *testing.T) {
	var rests int
	for seed := range uint64(20) {
		w := newWorld(seed, mutateNothing)
		e := w.era
		if w.shape.segments || e.ahead {
			w.abandon()
			continue // free memory does not get old
		}
		w.do("use", func() {
			w.openStream(1, true)
			settings := w.shape.settings(0)
			settings.AgeTicks, settings.LimitBytes = 2, e.limit.Load()
			w.kept(e.pool.Reconfigure(context.Background(), settings))
			working, adopted := e.streams[0], e.streams[len(e.streams)-1]
			b, err := working.Alloc(sizeclass.MaxBytes + 1)
			if buffer := w.answered(working, nil, b, sizeclass.MaxBytes+1, 0, err); buffer != nil {
				w.recordUse(buffer, adopted)
				w.free(buffer, 0)
				rests++
			}
			assert.False(t, working.Waits(), "a turn has collected the free")
			w.unload()
		})
		w.rest(e.streams[0], 0, 2, maxRestTicks)
		w.rested(0, 0)
		require.Nil(t, w.fault, "seed %d: %+v", seed, w.fault)
		w.abandon()
	}
	assert.GreaterOrEqual(t, rests, 5)
}
