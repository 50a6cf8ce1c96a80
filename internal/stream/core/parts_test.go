package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// A batch counts as seen exactly if a moment between its Reading and its Seen is within a Snapshot.
func TestABatchIsSeenByEachSnapshotAtItsTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var p Parts
		reads := rapid.Bool().Draw(t, "a snapshot has begun")
		if reads {
			p.readings.Add(1)
		}
		reading, seen := p.Reading(), reads
		for range rapid.IntRange(0, 4).Draw(t, "begins and ends") {
			p.readings.Add(1) // as Snapshot does
			reads, seen = !reads, true
		}
		assert.Equal(t, seen, p.Seen(reading))
	})
}

// A Snapshot is a reading from its begin to its end, also while it collects.
func TestASnapshotIsAReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	b := w.alloc(256*kib, 0, w.always)
	parts := w.core.usage.parts
	before := parts.Reading()
	var during []bool
	w.core.ranges.onFree = append(w.core.ranges.onFree, func(int32) { during = append(during, parts.Seen(parts.Reading())) })
	w.free(b)
	assert.False(t, parts.Seen(before))
	w.core.Snapshot()
	assert.Equal(t, []bool{true}, during)
	assert.True(t, parts.Seen(before))
	assert.False(t, parts.Seen(parts.Reading()), "it has ended")
}
