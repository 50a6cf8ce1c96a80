package sleep_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/vramtest"
)

// TestHandlesHoldNothingElse makes an arena while handles of others have much free memory, and others allocate memory that the
// arena has freed: the arena still releases all of its memory.
func TestHandlesHoldNothingElse(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, sleep.Options{}, vramtest.Config(vram.Config{Debug: true, Footprint: vram.Fast}))
	var others []cuda.Buffer
	for range 40 {
		b, err := r.c.Alloc(3 * mib)
		require.NoError(t, err)
		others = append(others, b)
	}
	for i := 0; i < len(others); i += 2 {
		require.NoError(t, others[i].Free())
	}
	require.NoError(t, r.c.Stream().Trim(ctx)) // free in the pool, next to live buffers

	var kept []cuda.Buffer
	var want [][]byte
	for i := range uint64(20) {
		b, bytes := r.filled(mib+64*kib, i)
		if i%2 == 0 {
			require.NoError(t, b.Free())
			continue
		}
		kept, want = append(kept, b), append(want, bytes)
	}
	d := r.context()
	for range 10 {
		b, err := d.Alloc(mib)
		require.NoError(t, err)
		others = append(others, b)
	}
	n, err := r.arena.Stats(ctx)
	require.NoError(t, err)
	before := r.freeBytes()
	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	assert.Equal(t, n.HeldBytes, r.freeBytes()-before, "no handle stays")
	require.NoError(t, r.arena.Wake(ctx))
	for i, b := range kept {
		r.holds(b, want[i])
	}
	for _, b := range others {
		if b.Live() {
			require.NoError(t, b.Free())
		}
	}
}

// TestPagesStayInTheArena has the device release all that is free: an arena keeps its pages, for its next buffers.
func TestPagesStayInTheArena(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, sleep.Options{})
	a, err := r.arena.Alloc(8 * mib)
	require.NoError(t, err)
	b, want := r.filled(2*mib, 1)
	require.NoError(t, a.Free())
	held := r.dev.Stats().ReservedBytes
	_, err = r.dev.Trim(ctx, 0)
	require.NoError(t, err)
	assert.Equal(t, held, r.dev.Stats().ReservedBytes)
	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	require.NoError(t, r.arena.Wake(ctx))
	r.holds(b, want)
	assert.Equal(t, held, r.dev.Stats().ReservedBytes)
}

// TestWorkMakesNoOtherCalls counts the calls of a launch on an arena's buffer.
func TestWorkMakesNoOtherCalls(t *testing.T) {
	r := newFaultyRig(t, sleep.Options{})
	b, _ := r.filled(mib, 1)
	launch := func() { require.NoError(t, r.c.Launch(r.touch, cuda.Cover(1, 1), cuda.In(b))) }
	launch()
	for _, call := range []string{"cuEventRecord", "cuStreamWaitEvent"} {
		before := r.faults.Calls(call)
		launch()
		assert.Equal(t, before, r.faults.Calls(call), call)
	}
}
