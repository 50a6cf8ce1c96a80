package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/pool/core"
)

// Returns of one client may overtake each other: the newest fence that has passed is reported, wherever it is in the list, and the
// marks up to the first that has not passed are released.
func TestTheNewestPassedFenceIsReported(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(4))
	c := h.testClient(1)
	var marked []markedFence
	add := func(f core.Fence) {
		mark, err := h.fences.Record(c.stream)
		require.NoError(t, err)
		marked = append(marked, markedFence{1, f, mark})
	}
	for _, f := range []core.Fence{2, 4, 1, 3} {
		add(f)
	}
	require.NoError(t, h.sim.Occupy(c.stream, time.Hour))
	add(5)
	d := &driver{pool: h.pool, marks: map[core.Client][]markedFence{1: marked}, watches: map[core.Client]*watch{}}
	require.NoError(t, d.poll())
	assert.Equal(t, []core.Passed{{Client: 1, Fence: 4}}, d.passed)
	assert.Equal(t, marked[4:], d.marks[1])
	require.NoError(t, d.poll())
	assert.Empty(t, d.passed, "it was reported")
	h.sim.Advance(time.Hour)
	require.NoError(t, d.poll())
	assert.Equal(t, []core.Passed{{Client: 1, Fence: 5}}, d.passed)
	assert.Empty(t, d.marks)
}

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
