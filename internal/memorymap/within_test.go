package memorymap_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/memorymap"
)

// A run that a stream has not reported is lent; so is a mixed range that extends beyond its run.
func TestOnlyReportedMemoryIsToldApart(t *testing.T) {
	t.Parallel()
	var list []memorymap.Range
	add := func(r memorymap.Range) { list = append(list, r) }
	sums := &memorymap.Sums{}
	sums.Bytes[memorymap.Live], sums.Bytes[memorymap.CachedRange] = 10, 10
	left := []memorymap.Range{
		{Start: 0, Bytes: 10, State: memorymap.Live, Stream: 1},
		{Start: 10, Bytes: 20, State: memorymap.Mixed, Stream: 1, Sums: sums},
		{Start: 40, Bytes: 20, State: memorymap.Mixed, Stream: 1, Sums: sums},
		{Start: 60, Bytes: 20, State: memorymap.Live, Stream: 1, Buffers: 3},
	}
	left = memorymap.Within(memorymap.Range{Start: 5, Bytes: 15, State: memorymap.Lent, Stream: 1}, left, add)
	left = memorymap.Within(memorymap.Range{Start: 30, Bytes: 40, State: memorymap.Lent, Stream: 1, Asleep: true}, left, add)
	left = memorymap.Within(memorymap.Range{Start: 70, Bytes: 20, State: memorymap.Lent, Stream: 1}, left, add)
	left = memorymap.Within(memorymap.Range{Start: 90, Bytes: 5, State: memorymap.Lent, Stream: 1}, append(left,
		memorymap.Range{Start: 90, Bytes: 10, State: memorymap.Live, Stream: 1, Buffers: 2}), add)
	left = memorymap.Within(memorymap.Range{Start: 95, Bytes: 5, State: memorymap.Lent, Stream: 1}, left, add)
	asleep := *sums
	asleep.AsleepBytes = 20
	assert.Equal(t, []memorymap.Range{
		{Start: 5, Bytes: 5, State: memorymap.Live, Stream: 1},
		{Start: 10, Bytes: 10, State: memorymap.Lent, Stream: 1},
		{Start: 30, Bytes: 10, State: memorymap.Lent, Stream: 1, Asleep: true},
		{Start: 40, Bytes: 20, State: memorymap.Mixed, Stream: 1, Sums: &asleep},
		{Start: 60, Bytes: 10, State: memorymap.Live, Stream: 1, Asleep: true, Buffers: 3},
		{Start: 70, Bytes: 10, State: memorymap.Live, Stream: 1},
		{Start: 80, Bytes: 10, State: memorymap.Lent, Stream: 1},
		{Start: 90, Bytes: 5, State: memorymap.Live, Stream: 1, Buffers: 2},
		{Start: 95, Bytes: 5, State: memorymap.Live, Stream: 1},
	}, list)
	assert.Empty(t, left)
	assert.Zero(t, sums.AsleepBytes, "the stream's own list stays")
}

// For any report of a stream, its runs are covered once, and each byte has the reported state.
func TestRunsAreCoveredOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string, state func() memorymap.State) (list []memorymap.Range) {
			at := int64(0)
			for range rapid.IntRange(0, 10).Draw(t, label) {
				at += rapid.Int64Range(0, 5).Draw(t, "gap")
				r := memorymap.Range{Start: at, Bytes: rapid.Int64Range(1, 9).Draw(t, "bytes"), State: state()}
				at = r.End()
				list = append(list, r)
			}
			return list
		}
		states := rapid.SampledFrom([]memorymap.State{memorymap.Live, memorymap.CachedRange})
		reported := draw("reported", func() memorymap.State { return states.Draw(t, "state") })
		runs := draw("runs", func() memorymap.State { return memorymap.Lent })
		is := map[int64]memorymap.State{}
		for _, r := range reported {
			for i := range r.Bytes {
				is[r.Start+i] = r.State
			}
		}
		left := reported
		for _, run := range runs {
			at := run.Start
			left = memorymap.Within(run, left, func(r memorymap.Range) {
				require.Equal(t, at, r.Start)
				require.Positive(t, r.Bytes)
				for ; at < r.End(); at++ {
					want, ok := is[at]
					if !ok {
						want = memorymap.Lent
					}
					require.Equal(t, want, r.State)
				}
			})
			require.Equal(t, run.End(), at)
		}
	})
}
