package pool

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/internal/watermark/shared"
)

// DurationBuckets is the number of buckets of a DurationHistogram.
const DurationBuckets = 33

// DurationHistogram counts durations by powers of two of a microsecond: Counts[i] those shorter
// than Bound(i) that are in no bucket before it, the last one all others, of 35 minutes and more (2^31 microseconds).
type DurationHistogram struct {
	Counts []uint64 // DurationBuckets, or none if there were no durations
	Sum    time.Duration
}

// String formats the number of durations and two bounds: half of them, and 99 %, took less.
func (h DurationHistogram) String() string {
	n := h.Count()
	if n == 0 {
		return "no durations"
	}
	return fmt.Sprintf("%s, half below %v, 99%% below %v, %v in all", units.Count(n, "duration"), h.Quantile(0.5), h.Quantile(0.99), h.Sum)
}

// Bound returns the upper bound of a bucket; 0: the last has none.
func (DurationHistogram) Bound(bucket int) time.Duration {
	if bucket >= DurationBuckets-1 {
		return 0
	}
	return time.Microsecond << bucket
}

// Count returns the number of durations.
func (h DurationHistogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns a bound of the shortest bucket that has, with those before it, such a share of the
// durations, over 0 up to 1: so many took less. It is 0 without any, and where the last bucket is
// the one.
func (h DurationHistogram) Quantile(share float64) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	var before uint64
	for i, c := range h.Counts {
		if before += c; float64(before) >= share*float64(n) {
			return h.Bound(i)
		}
	}
	return 0
}

// Sub returns the histogram of the durations that came after an earlier reading.
func (h DurationHistogram) Sub(before DurationHistogram) DurationHistogram {
	all := append([]uint64(nil), h.Counts...)
	for i := range min(len(all), len(before.Counts)) {
		all[i] -= before.Counts[i]
	}
	return DurationHistogram{all, h.Sum - before.Sum}
}

// Add returns the histogram of the durations of both.
func (h DurationHistogram) Add(other DurationHistogram) DurationHistogram {
	if h.Counts == nil {
		h.Counts = make([]uint64, len(other.Counts))
	}
	all := append([]uint64(nil), h.Counts...)
	for i := range min(len(all), len(other.Counts)) {
		all[i] += other.Counts[i]
	}
	return DurationHistogram{all, h.Sum + other.Sum}
}

// durations is a histogram that goroutines note durations in.
type durations struct {
	counts       [DurationBuckets]atomic.Uint64
	sumNanos     atomic.Int64
	longestNanos atomic.Int64
}

// NoteWait counts how long a request has waited.
func (h *durations) NoteWait(d time.Duration) {
	h.counts[min(bits.Len64(uint64(max(d, 0)/time.Microsecond)), DurationBuckets-1)].Add(1) //nolint:gosec // not negative
	h.sumNanos.Add(int64(d))
	shared.Raise(&h.longestNanos, int64(d))
}

// longest returns the longest duration.
func (h *durations) longest() time.Duration { return time.Duration(h.longestNanos.Load()) }

// resetLongest restarts the longest duration.
func (h *durations) resetLongest() { h.longestNanos.Store(0) }

// histogram reads the counts, one by one.
func (h *durations) histogram() (n DurationHistogram) {
	n.Sum = time.Duration(h.sumNanos.Load())
	for i := range h.counts {
		c := h.counts[i].Load()
		if c != 0 && n.Counts == nil {
			n.Counts = make([]uint64, DurationBuckets)
		}
		if n.Counts != nil {
			n.Counts[i] = c
		}
	}
	return n
}
