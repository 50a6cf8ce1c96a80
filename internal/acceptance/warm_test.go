package acceptance_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Warmed memory is allocated without a driver call, in any sizes, and on several streams.
func TestWarmMemoryNeedsNoDriver(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	want := []vram.Demand{{Bytes: 5 * kib, Count: 300}, {Bytes: 100 * kib, Count: 40}, {Bytes: 3 * mib, Count: 20}, {Bytes: gib + 5, Count: 2}}
	require.NoError(t, h.Warm(t.Context(), want...))
	warm := h.Stats()
	assert.Equal(t, warm.ReservedBytes, warm.FreeBytes)
	calls := h.driverCalls()
	s := h.stream()
	var live []vram.Buffer
	var asked int64
	for _, d := range slices.Backward(want) { // large ones first: best fit would cut into theirs otherwise
		for range d.Count {
			live = append(live, must(t, s, d.Bytes))
			asked += d.Bytes
		}
	}
	assert.Equal(t, calls, h.driverCalls())
	assert.GreaterOrEqual(t, warm.ReservedBytes, asked)
	assert.Equal(t, warm.ReservedBytes, h.addsUp().ReservedBytes)
	freeAll(t, live...)
}

// A warm-up for one buffer of a class maps one span, and one for a buffer more than a span holds a
// second.
func TestWarmRoundsUp(t *testing.T) {
	for _, d := range []vram.Demand{{Bytes: 1, Count: 1}, {Bytes: 64 * kib, Count: 1}, {Bytes: 64 * kib, Count: 33}, {Bytes: 40 * kib, Count: 101}} {
		h := openHouse(t, vram.Config{}, sim.Config{})
		require.NoError(t, h.Warm(t.Context(), d))
		warm := h.Stats()
		assert.GreaterOrEqual(t, warm.ReservedBytes, d.Bytes*int64(d.Count), "%+v", d)
		s := h.stream()
		calls := h.driverCalls()
		var live []vram.Buffer
		for range d.Count {
			live = append(live, must(t, s, d.Bytes))
		}
		assert.Equal(t, calls, h.driverCalls(), "%+v", d)
		freeAll(t, live...)
	}
}

// A warm-up maps memory in addition to used memory; a repeated one maps nothing.
func TestWarmIsBesideWhatIsInUse(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	b := must(t, h.stream(), 64*mib)
	require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: 32 * mib, Count: 1}))
	reserved := h.addsUp().ReservedBytes
	assert.GreaterOrEqual(t, reserved, 96*mib)
	require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: 32 * mib, Count: 1}))
	assert.Equal(t, reserved, h.addsUp().ReservedBytes)
	freeAll(t, b)
}

// A warm-up beyond the limit is refused, and the device keeps working.
func TestWarmBeyondTheLimit(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	b := must(t, s, 16*mib)
	for _, d := range []vram.Demand{{Bytes: 8 * mib, Count: 7}, {Bytes: 1, Count: 1 << 60}, {Bytes: 1 << 62, Count: 1}, {Bytes: 1 << 62, Count: 1 << 62}} {
		err := h.Warm(t.Context(), d)
		require.ErrorContains(t, err, "leaves no room", "%+v", d)
		var limit *vram.LimitError
		require.ErrorAs(t, err, &limit)
		assert.EqualValues(t, 64*mib, limit.LimitBytes)
		assert.Greater(t, limit.WantedBytes, int64(0))
	}
	for _, d := range []vram.Demand{{Bytes: 0, Count: 1}, {Bytes: 1, Count: -1}} {
		var bad *vram.ConfigError
		require.ErrorAs(t, h.Warm(t.Context(), d), &bad)
	}
	require.NoError(t, h.Warm(t.Context()))
	require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: mib, Count: 0}))
	h.addsUp()
	freeAll(t, b, must(t, s, 48*mib))
}

// Demands that each are below the limit, and together more than can be counted in pages, are
// refused.
func TestWarmBeyondWhatCanBeCounted(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 8 << 40})
	for _, count := range []int{16, 1 << 15} { // 2^32 pages, 2^64 bytes
		want := make([]vram.Demand, count)
		for i := range want {
			want[i] = vram.Demand{Bytes: 1, Count: 1 << 40}
		}
		var limit *vram.LimitError
		require.ErrorAs(t, h.Warm(t.Context(), want...), &limit)
		assert.Equal(t, vram.LimitError{WantedBytes: 1 << 40, LimitBytes: 1 << 40}, *limit)
	}
	assert.Zero(t, h.addsUp().ReservedBytes)
}

// The end of the context ends the waiting; mapped memory stays.
func TestWarmEndsWithItsContext(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	entered, release := h.holdUp("cuMemCreate")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	require.ErrorIs(t, h.Warm(ctx, vram.Demand{Bytes: 64 * mib, Count: 1}), context.Canceled)
	release()
	require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: 64 * mib, Count: 1}))
	assert.Equal(t, 64*mib, h.addsUp().ReservedBytes)
}

// A device that is opened with a demand maps it in the background.
func TestOpenWarms(t *testing.T) {
	h := openHouse(t, vram.Config{Warm: []vram.Demand{{Bytes: 32 * mib, Count: 2}}}, sim.Config{})
	h.until("the warm-up", func() bool { return h.Stats().FreeBytes >= 64*mib })
	calls := h.driverCalls()
	a, b := h.stream(), h.stream()
	freeAll(t, must(t, a, 32*mib), must(t, b, 32*mib))
	assert.Equal(t, calls, h.driverCalls())
}

// Trim releases free memory, from pool and streams alike, keeps as much as it is told to keep, and
// never touches live buffers.
func TestTrimGivesBackWhatIsFree(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	a, b := h.stream(), h.stream()
	live := []vram.Buffer{must(t, a, 10*mib), must(t, b, 3*kib)}
	freeAll(t, must(t, a, 30*mib), must(t, b, 50*mib))
	require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: 20 * mib, Count: 1}))
	before := h.addsUp()

	n, err := h.Trim(t.Context(), before.ReservedBytes)
	require.NoError(t, err)
	assert.Zero(t, n, "no more is held than may be kept")
	half, err := h.Trim(t.Context(), 60*mib)
	require.NoError(t, err)
	middle := h.addsUp()
	assert.Equal(t, before.ReservedBytes-half, middle.ReservedBytes)
	rest := h.trim()
	after := h.addsUp()
	assert.Equal(t, before.ReservedBytes, half+rest+after.ReservedBytes)
	assert.Less(t, after.ReservedBytes, 30*mib, "about what lives")
	for _, x := range live {
		assert.True(t, x.Live())
	}
	_, err = h.Trim(t.Context(), -1)
	var bad *vram.ConfigError
	require.ErrorAs(t, err, &bad)
	assert.Equal(t, "keepBytes", bad.Field)
	freeAll(t, live...)
	h.trim()
	assert.Zero(t, h.addsUp().ReservedBytes)
}

// A stream with a budget takes no more of the memory mapped ahead than it may keep: it would return
// the rest at once, with a fence.
func TestABudgetBoundsWhatIsLent(t *testing.T) {
	h := openHouse(t, vram.Config{StreamCacheBytes: 16 * mib}, sim.Config{})
	require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: gib, Count: 1}))
	calls := h.driverCalls()
	s := h.stream()
	var live []vram.Buffer
	for range 20 {
		live = append(live, must(t, s, 3*mib))
		n := h.Stats()
		assert.LessOrEqual(t, n.CachedBytes, 16*mib)
		assert.Equal(t, n.ReservedBytes, n.FreeBytes+n.CachedBytes+n.LiveBytes)
	}
	assert.Equal(t, calls, h.driverCalls())
	freeAll(t, live...)
}

// A warm-up of several gigabytes tells how far it has come, at least once for each, up to all that
// it wants; other driver jobs, and those that fail, tell nothing of it.
func TestWarmTellsItsProgress(t *testing.T) {
	for _, fails := range []bool{false, true} {
		var told []vram.WarmEvent
		h := openHouse(t, vram.Config{Events: vram.Events{Warm: func(e vram.WarmEvent) { told = append(told, e) }}}, sim.Config{})
		freeAll(t, must(t, h.stream(), 8*mib))
		if fails {
			require.NoError(t, h.faults.Add(fault.Rule{Func: "cuMemMap", First: 20, Result: cudadrv.Unknown}))
		}
		err := h.Warm(t.Context(), vram.Demand{Bytes: 64 * mib, Count: 5 * 16})
		assert.Equal(t, fails, errors.Is(err, cudadrv.Unknown), "%v", err)
		require.NoError(t, h.Close())
		var before int64
		for _, e := range told {
			assert.Equal(t, 5*gib, e.WantedBytes)
			assert.Greater(t, e.MappedBytes, before)
			before = e.MappedBytes
		}
		require.NotEmpty(t, told)
		if !fails {
			require.GreaterOrEqual(t, len(told), 5)
			assert.Equal(t, 5*gib, before)
		}
	}
}
