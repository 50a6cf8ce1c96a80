package heap

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// BenchmarkCalibration measures a compare-and-swap and an OR on a private word, for comparison.
func BenchmarkCalibration(b *testing.B) {
	b.ReportAllocs()
	var w atomic.Uint64
	w.Store(1)
	for b.Loop() {
		m := w.Load()
		w.CompareAndSwap(m, m&^1)
		w.Or(1)
	}
}

// BenchmarkTakeGive takes and gives lengths that do not repeat, among that many free ranges.
func BenchmarkTakeGive(b *testing.B) {
	for _, ranges := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("ranges=%d", ranges), func(b *testing.B) {
			b.ReportAllocs()
			h := perforated(ranges, 128, 4096)
			r := rand.New(rand.NewPCG(1, 2))
			lengths := make([]uint32, 4096)
			for i := range lengths {
				lengths[i] = 128 + r.Uint32N(3000)
			}
			before, n := h.Visits(), 0
			for b.Loop() {
				h.Give(h.Take(lengths[n&4095]))
				n++
			}
			b.ReportMetric(float64(h.Visits()-before)/float64(n), "visits/op")
		})
	}
}

// perforated returns a heap of that many free ranges between used blocks, with lengths in [least, end).
func perforated(ranges int, least, end uint32) *Heap {
	const pageUnits = 4096
	r := rand.New(rand.NewPCG(3, 4))
	lengths := make([]uint32, ranges)
	var sum uint32
	for i := range lengths {
		lengths[i] = least + r.Uint32N(end-least)
		sum += lengths[i] + 1
	}
	h := New(pageUnits)
	h.Grant(0, (sum+pageUnits-1)/pageUnits)
	holes := make([]int32, ranges)
	for i, length := range lengths {
		holes[i] = h.Take(length)
		h.Take(1)
	}
	if rest := h.LargestFree(); rest > 0 {
		h.Take(rest)
	}
	for _, hole := range holes {
		h.Give(hole)
	}
	return h
}
