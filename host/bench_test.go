package host

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkPair is an Alloc and a Free of 64 KiB: of the page-locked cache when it is warm, with
// wrappers around it, and with an announced use; of the driver's calls on the simulated device, whose
// own time is not an H200's 350 µs; and a calibration, as package lab/bench has it: one
// uncontended compare-and-swap and one atomic OR.
func BenchmarkPair(b *testing.B) {
	const blockBytes = 64 << 10
	b.Run("impl=calibration", func(b *testing.B) {
		b.ReportAllocs()
		var word struct {
			_    [128]byte
			mask atomic.Uint64
			_    [120]byte
		}
		for b.Loop() {
			mask := word.mask.Load()
			word.mask.CompareAndSwap(mask, mask&^1)
			word.mask.Or(1)
		}
	})
	r := newRig(b)
	pair := func(a Allocator) func(b *testing.B) {
		return func(b *testing.B) {
			b.Helper()
			b.ReportAllocs()
			for b.Loop() {
				block, err := a.Alloc(blockBytes, 0)
				if err != nil {
					b.Fatal(err)
				}
				if err := block.Free(); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	cache := r.cache(1 << 20)
	b.Run("impl=cache", pair(cache))
	b.Run("impl=cache/goroutines=2", func(b *testing.B) {
		b.SetParallelism(1)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				block, err := cache.Alloc(blockBytes, 0)
				if err != nil {
					b.Error(err)
					return
				}
				_ = block.Free()
			}
		})
	})
	tracked, err := Tracked(cache)
	require.NoError(b, err)
	b.Run("impl=tracked", pair(tracked))
	limited, err := Limited(cache, Bounds{Bytes: 1 << 30})
	require.NoError(b, err)
	b.Run("impl=limited", pair(limited))
	stream := r.stream()
	b.Run("impl=cache/used", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			block, _ := cache.Alloc(blockBytes, 0)
			_ = block.Use(stream)
			_ = block.Free()
		}
	})
	source, err := PageLockedSource(r.device)
	require.NoError(b, err)
	b.Run("impl=driver", pair(source))
	b.Run("impl=heap", pair(NewAligned()))
	r.end(cache)
}

// BenchmarkPairInCalibrations measures the warm pair against the calibration in turns of some hundred
// microseconds, and reports the median of the ratios: on a machine with other load the two rows of
// BenchmarkPair are of different moments.
func BenchmarkPairInCalibrations(b *testing.B) {
	const count = 20_000
	r := newRig(b)
	cache := r.cache(1 << 20)
	var word atomic.Uint64
	var ratios, nanos []float64
	for b.Loop() {
		start := time.Now()
		for range count {
			mask := word.Load()
			word.CompareAndSwap(mask, mask&^1)
			word.Or(1)
		}
		calibration := time.Since(start)
		start = time.Now()
		for range count {
			block, _ := cache.Alloc(64<<10, 0)
			_ = block.Free()
		}
		pair := time.Since(start)
		ratios = append(ratios, float64(pair)/float64(calibration))
		nanos = append(nanos, float64(pair)/count)
	}
	slices.Sort(ratios)
	slices.Sort(nanos)
	b.ReportMetric(ratios[len(ratios)/2], "calibrations/pair")
	b.ReportMetric(nanos[len(nanos)/2], "ns/pair")
	b.ReportMetric(0, "ns/op")
	r.end(cache)
}

// A warm pair makes no heap allocation and no driver call.
func TestAWarmPairAllocatesNothing(t *testing.T) {
	r := newRig(t)
	p := r.cache(1 << 20)
	free(t, alloc(t, p, 5000, 0))
	calls := r.faults.Calls("*")
	before := r.sim.Counts()
	allocations := testing.AllocsPerRun(100, func() {
		b, err := p.Alloc(5000, 64)
		if err != nil || b.Free() != nil {
			t.Error("a warm pair failed")
		}
	})
	if !raceDetector {
		require.Zero(t, allocations)
	}
	require.Equal(t, before, r.sim.Counts())
	require.Equal(t, calls, r.faults.Calls("*"))
	r.end(p)
}
