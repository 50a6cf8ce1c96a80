package pool

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// noted is the histogram of these durations.
func noted(all ...time.Duration) DurationHistogram {
	h := new(durations)
	for _, d := range all {
		h.NoteWait(d)
	}
	return h.histogram()
}

// A duration is in the first bucket whose bound is above it; the last bucket has no bound.
func TestADurationIsBelowTheBoundOfItsBucket(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, 999, time.Microsecond, 1999, 2 * time.Microsecond, time.Second, time.Hour, 80 * time.Hour, math.MaxInt64} {
		h := noted(d)
		assert.Len(t, h.Counts, DurationBuckets)
		assert.EqualValues(t, 1, h.Count())
		assert.Equal(t, d, h.Sum)
		for i, n := range h.Counts {
			switch bound := h.Bound(i); {
			case n == 0:
			case i == DurationBuckets-1:
				assert.Zero(t, bound)
				assert.GreaterOrEqual(t, d, h.Bound(i-1))
			default:
				assert.Less(t, d, bound)
				assert.True(t, i == 0 || d >= h.Bound(i-1), "%v is in bucket %d", d, i)
			}
		}
	}
	assert.EqualValues(t, 1, noted(35 * time.Minute).Counts[DurationBuckets-2])
	assert.EqualValues(t, 1, noted(36 * time.Minute).Counts[DurationBuckets-1])
	assert.EqualValues(t, 1, noted(-time.Second).Counts[0])
	assert.Zero(t, noted(), "no durations: no buckets")
}

// A quantile is a bound that so many durations are below.
func TestQuantiles(t *testing.T) {
	t.Parallel()
	h := noted(time.Microsecond, time.Microsecond, 5*time.Microsecond, 100*time.Microsecond)
	for share, want := range map[float64]time.Duration{
		0.25: 2 * time.Microsecond, 0.5: 2 * time.Microsecond, 0.51: 8 * time.Microsecond, 0.75: 8 * time.Microsecond,
		0.76: 128 * time.Microsecond, 1: 128 * time.Microsecond,
	} {
		assert.Equal(t, want, h.Quantile(share), share)
	}
	assert.Equal(t, "4 durations, half below 2µs, 99% below 128µs, 107µs in all", h.String())
	assert.Zero(t, noted(100*time.Hour).Quantile(0.5), "the last bucket has no bound")
	assert.Zero(t, DurationHistogram{}.Quantile(0.5))
}

// Add counts the durations of both, Sub those of one without an earlier reading; neither changes its operands.
func TestSumsOfHistograms(t *testing.T) {
	t.Parallel()
	some, others := []time.Duration{5, time.Second, time.Hour}, []time.Duration{time.Second, 3 * time.Second}
	a, b, none := noted(some...), noted(others...), DurationHistogram{}
	both := noted(append(some, others...)...)
	assert.Equal(t, both, a.Add(b))
	assert.Equal(t, both, b.Add(a))
	assert.Equal(t, a, both.Sub(b))
	assert.Equal(t, a, a.Add(none))
	assert.Equal(t, a, none.Add(a))
	assert.Equal(t, a, a.Sub(none))
	assert.Equal(t, noted(some...), a)
	assert.Equal(t, noted(others...), b)
	assert.Zero(t, both.Sub(both).Count())
	assert.Zero(t, both.Sub(both).Sum)
}

// The longest duration is the longest since it was restarted.
func TestTheLongestDuration(t *testing.T) {
	t.Parallel()
	h := new(durations)
	for _, d := range []time.Duration{3, 7, 5} {
		h.NoteWait(d)
	}
	assert.EqualValues(t, 7, h.longest())
	h.resetLongest()
	assert.Zero(t, h.longest())
	h.NoteWait(2)
	assert.EqualValues(t, 2, h.longest())
	assert.EqualValues(t, 4, h.histogram().Count())
}
