package pool

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/together"
)

// Reports are passed on in the order of the turns that added them, by one goroutine at a time, whichever of many comes to it.
func TestReportsOfGoroutinesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const passers, reported = 3, 2000
	var q reports
	var inside atomic.Int32
	var seen []int
	pass := func() {
		q.pass(func(r JobReport) {
			assert.EqualValues(t, 1, inside.Add(1))
			seen = append(seen, r.Calls)
			inside.Add(-1)
		})
	}
	var ended atomic.Bool
	together.Run(1+passers, func(number int) {
		if number > 0 {
			for !ended.Load() {
				pass()
			}
			return
		}
		for n := range reported {
			q.add(JobReport{Calls: n})
			if n%7 == 0 {
				pass()
			}
		}
		ended.Store(true)
	})
	pass()
	require.Len(t, seen, reported)
	for n, calls := range seen {
		require.Equal(t, n, calls)
	}
}

// A report that comes while an earlier one is passed on waits for that, and its goroutine does not.
func TestAReportDuringAnother(t *testing.T) {
	t.Parallel()
	var q reports
	var seen []int
	q.add(JobReport{Calls: 1})
	q.pass(func(r JobReport) {
		if seen = append(seen, r.Calls); r.Calls == 1 {
			q.add(JobReport{Calls: 2})
			q.pass(func(JobReport) { assert.Fail(t, "a second goroutine passes it on") })
			assert.Equal(t, []int{1}, seen)
		}
	})
	assert.Equal(t, []int{1, 2}, seen)
	assert.Panics(t, func() {
		q.add(JobReport{Calls: 3})
		q.add(JobReport{Calls: 4})
		q.pass(func(JobReport) { panic("an observer's mistake") })
	})
	q.add(JobReport{Calls: 5})
	q.pass(func(r JobReport) { seen = append(seen, r.Calls) })
	assert.Equal(t, []int{1, 2, 4, 5}, seen, "a panic loses no other report")
}
