package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A mark is released when it has passed and not before: its event would be recorded again, on a stream that may be idle, and
// the memory under it would be taken for clean.
func TestAMarkIsKeptUntilItHasPassed(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(16))
		a, b := h.testClient(1), h.testClient(2)
		early, between, late := a.must(4), a.must(4), a.must(4) // neighbours would merge
		require.NoError(t, h.sim.Occupy(a.stream, time.Second))
		a.free(early)
		require.NoError(t, h.sim.Occupy(a.stream, 2*time.Second))
		a.free(late)
		h.sim.Advance(time.Second)
		h.pool.Tick()
		for h.snapshot().PendingBytes > 4*page { // the query is on its way
			h.pool.Tick()
		}
		for range 4 { // the event of the early one is among these
			_, err := h.fences.Record(b.stream)
			require.NoError(t, err)
			h.ownEvents++
		}
		for range 2 { // the first begins a query, the second follows its answer
			h.pool.Tick()
			assert.EqualValues(t, 4*page, h.settle().PendingBytes)
		}
		a.free(between)
	})
}
