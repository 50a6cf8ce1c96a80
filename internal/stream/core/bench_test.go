package core

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/go-vram/vram/internal/stream/magazine"
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

// BenchmarkMiss allocates sizes that do not recur, each from the core's own ranges, with so many live
// buffers, and frees the oldest.
func BenchmarkMiss(b *testing.B) {
	for _, liveCount := range []int{1, 500} {
		b.Run(fmt.Sprintf("from=ranges/live=%d", liveCount), func(b *testing.B) {
			b.ReportAllocs()
			s := newBare()
			slots, words := make([]*magazine.Slot, liveCount), make([]uint64, liveCount)
			var r ramp
			for i := range slots {
				slots[i], words[i] = s.alloc(r.next())
			}
			n := 0
			for b.Loop() {
				_ = slots[n].Free(words[n])
				slots[n], words[n] = s.alloc(r.next())
				if n++; n == liveCount {
					n = 0
				}
			}
		})
	}
}

// BenchmarkPair allocates and frees one size: a class, or a length that is kept.
func BenchmarkPair(b *testing.B) {
	for _, bytes := range []int64{512, 64 * kib, mib, 128 * mib} {
		b.Run(fmt.Sprintf("from=magazine/bytes=%d", bytes), func(b *testing.B) {
			b.ReportAllocs()
			s := newBare()
			for range 2 * heatKept {
				slot, word := s.alloc(bytes)
				_ = slot.Free(word)
			}
			for b.Loop() {
				slot, word := s.alloc(bytes)
				_ = slot.Free(word)
			}
		})
	}
}

// BenchmarkKeep opens a magazine for a length, serves enough requests to justify it, and closes it.
func BenchmarkKeep(b *testing.B) {
	b.ReportAllocs()
	s := newBare()
	const pairs = heatKept + worthHits + 2
	for b.Loop() {
		for range pairs {
			slot, word := s.alloc(mib)
			_ = slot.Free(word)
		}
		s.core.retention.evictOldest()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pairs, "ns/pair")
}

// BenchmarkDrain collects a thousand loose blocks: each between two live ones, or contiguous, so that they
// merge.
func BenchmarkDrain(b *testing.B) {
	const blocks = 1000
	for _, apart := range []bool{true, false} {
		b.Run(fmt.Sprintf("blocks=%d/apart=%t", blocks, apart), func(b *testing.B) {
			b.ReportAllocs()
			s := newBare()
			var slots [blocks]*magazine.Slot
			fill := func(wall bool) {
				for i := range slots {
					slots[i], _ = s.alloc(100 * kib)
					if wall {
						s.alloc(65 * kib)
					}
				}
			}
			free := func() {
				for _, slot := range slots {
					_ = slot.Free(slot.Word())
				}
			}
			fill(apart)
			free()
			s.core.Drain()
			for b.Loop() {
				b.StopTimer()
				fill(false)
				free()
				b.StartTimer()
				s.core.Drain()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blocks, "ns/block")
		})
	}
}
