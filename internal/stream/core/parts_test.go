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
