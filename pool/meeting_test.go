package pool

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/together"
)

// Each event of a tenant among goroutines is counted once, and they never have more than its quota.
func TestFiguresOfATenantAmongGoroutines(t *testing.T) {
	const goroutineCount, rounds, limit = 4, 200, 6 * page
	tenant := NewTenant("guest", 1, Quota{LimitBytes: limit})
	c := (*TenantControl)(tenant)
	var parts [goroutineCount]TenantStats
	var waits [goroutineCount][]time.Duration
	var taken atomic.Int64
	together.Run(goroutineCount, func(number int) {
		random, n := rand.New(rand.NewPCG(uint64(number), 1)), &parts[number] //nolint:gosec // a test
		for range rounds {
			bytes := (1 + random.Int64N(3)) * page
			d := time.Duration(random.Int64N(int64(8 * time.Microsecond)))
			c.NoteWait(d)
			waits[number] = append(waits[number], d)
			n.Longest = max(n.Longest, d)
			if !c.Charge(bytes) {
				assert.ErrorIs(t, c.Refuse(bytes), ErrQuota)
				n.QuotaRefusedCount++
				continue
			}
			assert.LessOrEqual(t, taken.Add(bytes), limit)
			if bytes == page {
				c.OutOfMemory()
				n.OutOfMemoryCount++
				taken.Add(-bytes)
				c.Refund(bytes)
				continue
			}
			c.Hold(bytes)
			n.AllocCount++
			n.PeakHeldBytes = max(n.PeakHeldBytes, bytes)
			taken.Add(-bytes)
			c.Paid(bytes)
			n.FreeCount++
		}
	})
	want := TenantStats{Name: "guest", ID: 1, Quota: Quota{LimitBytes: limit}}
	want.Durations = noted(slices.Concat(waits[:]...)...)
	for _, n := range parts {
		want.AllocCount += n.AllocCount
		want.FreeCount += n.FreeCount
		want.OutOfMemoryCount += n.OutOfMemoryCount
		want.QuotaRefusedCount += n.QuotaRefusedCount
		want.Longest = max(want.Longest, n.Longest)
		want.PeakHeldBytes = max(want.PeakHeldBytes, n.PeakHeldBytes)
	}
	got := tenant.Stats()
	assert.GreaterOrEqual(t, got.PeakHeldBytes, want.PeakHeldBytes)
	assert.LessOrEqual(t, got.PeakHeldBytes, limit)
	want.PeakHeldBytes = got.PeakHeldBytes
	assert.Equal(t, want, got)
}

// Each event of a stream among goroutines is counted once, for the stream and for its device.
func TestATallyAmongGoroutines(t *testing.T) {
	const goroutineCount, rounds = 4, 150
	var device Tally
	streams := make([]Tally, 2)
	for i := range streams {
		streams[i].Init(&device)
	}
	together.Run(goroutineCount, func(number int) {
		s := &streams[number%len(streams)]
		for range rounds {
			s.OutOfMemory()
			assert.NoError(t, s.Refuse(nil))
			s.Retry()
			s.BadFree()
			s.EndWait()
		}
	})
	const n = goroutineCount * rounds
	assert.Equal(t, RequestCounts{n, n, n, n, n}, device.Counts())
	for i := range streams {
		assert.Equal(t, RequestCounts{n / 2, n / 2, n / 2, n / 2, n / 2}, streams[i].Counts())
	}
}

// A reading among the events has no bytes of a buffer that is not counted, misses none that was not freed, and has no duration in the
// sum that is in no bucket.
func TestReadingsOfATenantAmongGoroutines(t *testing.T) {
	for range 100 {
		tenant := NewTenant("guest", 1, Quota{})
		c := (*TenantControl)(tenant)
		require.True(t, c.Charge(2*page))
		c.Hold(page)
		together.Run(2, func(number int) {
			if number == 0 {
				for range 4 {
					c.NoteWait(1)
				}
				c.Hold(page)
				c.Paid(2 * page)
				return
			}
			for range 6 {
				n := tenant.Stats()
				assert.LessOrEqual(t, n.HeldBytes, int64(n.AllocCount)*page) //nolint:gosec // two
				assert.True(t, n.HeldBytes > 0 || n.FreeCount > 0)
				assert.LessOrEqual(t, uint64(n.Durations.Sum), n.Durations.Count()) //nolint:gosec // a few
			}
		})
	}
}
