package streams

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
)

// Memory waits for each of the streams that use it, whether their numbers are in the word, in the
// note, or in its list.
func TestEachOfSeveralUsesKeepsMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	home := r.stream(core.Budget{})
	var others []*Stream
	for range 66 {
		others = append(others, r.stream(core.Budget{}))
	}
	for _, users := range [][]int{{0, 1}, {1, 0}, {40, 0}, {0, 40}, {40, 41}, {65, 0}, {0, 65}, {65, 64}} {
		b := must(t, home, 100*kib)
		for at, user := range users {
			require.NoError(t, b.RecordStream(others[user]))
			require.NoError(t, b.RecordStream(others[user]), "once more")
			r.work(others[user], time.Duration(len(users)-at)*time.Second) // the last is finished first
		}
		require.NoError(t, b.Free())
		r.tick(home)
		for range users {
			assert.EqualValues(t, 100*kib, r.stats(home).PendingBytes, "%v", users)
			r.gpu.Advance(time.Second)
			r.tick(home)
		}
		assert.Zero(t, r.stats(home).PendingBytes, "%v", users)
		b = must(t, home, 100*kib) // the slot's note is gone
		require.NoError(t, b.Free())
		assert.Zero(t, r.stats(home).PendingBytes, "%v", users)
	}
}

// record is so many allocations of a size that another stream uses until they are freed, one at a
// time.
func record(t *testing.T, home, other *Stream, bytes int64, count int) {
	t.Helper()
	for range count {
		b := must(t, home, bytes)
		require.NoError(t, b.RecordStream(other))
		require.NoError(t, b.Free())
	}
}

// recordCalls are the driver calls so far that fences cost.
func (r *rig) recordCalls() (calls uint64) {
	for _, function := range []string{"cuEventRecord", "cuEventQuery", "cuStreamIsCapturing"} {
		calls += r.faults.Calls(function)
	}
	return calls
}

// Buffers of any size share fences by the dozen where many are freed in a short time; the memory
// that waits for them is bounded by a sixteenth of the limit, and ticks collect it.
func TestManyRecordedBuffersShareFences(t *testing.T) {
	t.Parallel()
	sizes := []int64{64 * kib, 16 * mib, 4 * kib, mib, 128 * mib}
	if underRace && testing.Short() {
		sizes = sizes[:2]
	}
	for _, bytes := range sizes {
		r, home, other := pair(t, 128<<30)
		const count = 4000
		record(t, home, other, bytes, 12*count)
		before := r.recordCalls()
		record(t, home, other, bytes, count)
		calls := float64(r.recordCalls()-before) / count
		assert.LessOrEqual(t, calls, 0.1, "%d bytes", bytes)
		n := r.stats(home)
		assert.LessOrEqual(t, n.HeldBytes, int64(128<<30/16)+8*mib+2*bytes)
		assert.LessOrEqual(t, n.PendingBytes, int64(128<<30/16)+8*mib)
		for range 16 {
			r.tick(home)
		}
		assert.Zero(t, r.stats(home).PendingBytes)
		r.balanced(home, other)
	}
}

// A program that frees few long buffers in a tick holds as much as it did with a fence for each.
func TestFewRecordedBuffersKeepLittleMemory(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 128<<30)
	for range 20 {
		record(t, home, other, 16*mib, 200)
		r.tick(home)
	}
	assert.LessOrEqual(t, r.stats(home).HeldBytes, 48*mib)
}

// Memory that others want does not wait to share fences: memory whose fences have passed is theirs at
// once, and the rest when its fences have passed.
func TestSlackEndsWhereOthersWantMemory(t *testing.T) {
	t.Parallel()
	for _, busy := range []time.Duration{0, time.Second} {
		r, home, other := pair(t, 4<<30)
		record(t, home, other, 16*mib, 20000)
		assert.Greater(t, r.stats(home).HeldBytes, 200*mib)
		if busy > 0 {
			r.work(other, busy)
			record(t, home, other, 16*mib, 8)
		}
		third := r.stream(core.Budget{})
		before := r.faults.Calls("cuEventSynchronize")
		b := must(t, third, 4<<30-2*mib)
		assert.Equal(t, busy, r.gpu.Now(), "only for what is not finished is waited")
		if busy == 0 {
			assert.Equal(t, before, r.faults.Calls("cuEventSynchronize"))
		}
		assert.Zero(t, r.stats(home).PendingBytes)
		require.NoError(t, b.Free())
	}
}

// A request that finds no memory within the limit waits for fences rather than fail, with any
// allowance.
func TestSlackEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 4<<30)
	record(t, home, other, 16*mib, 20000)
	r.work(other, time.Second)
	for range 8 {
		record(t, home, other, 512*mib, 1)
	}
	b := must(t, home, 4<<30-2*mib)
	require.NoError(t, b.Free())
	require.NoError(t, control(home).Check(t.Context()))
}

// A wait for a fence that failed is not repeated before the next tick; one that helped is.
func TestAWaitThatHelpsIsRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	leave := r.occupy(s)
	for _, passed := range []bool{false, true, false, true} {
		s.turn.dispatch.fenceWait.Begin()
		s.turn.dispatch.retryDelayed(passed)
		assert.Equal(t, passed, s.turn.dispatch.fenceWait.BeginForOthers(1))
		assert.False(t, s.turn.dispatch.fenceWait.Interrupted())
	}
	s.turn.dispatch.retryDelayed(true)
	leave()
	assert.Zero(t, r.stats(s).Waiting)
}
