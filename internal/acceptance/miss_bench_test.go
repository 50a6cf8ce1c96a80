package acceptance_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// manyStreams opens so many streams of a device, each with a live buffer of that many bytes, if any.
func manyStreams(tb testing.TB, count int, liveBytes int64) (*vram.Device, []*vram.Stream) {
	tb.Helper()
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = dev.Close() }) // its error lists the live buffers
	streams := make([]*vram.Stream, count)
	for i := range streams {
		streams[i], err = dev.NewStream()
		require.NoError(tb, err)
		if liveBytes > 0 {
			_, err = streams[i].Alloc(liveBytes)
			require.NoError(tb, err)
		}
	}
	return dev, streams
}

// BenchmarkMiss is a request for 8 MiB that the cache of its stream does not serve, on a device with so many streams, of which
// the others have nothing or a small buffer each. Its memory is free in the pool (returned), or cached by another stream, since
// all streams make a request in turns (turns), or comes from the driver (growth). The median does not depend on the number of
// streams.
func BenchmarkMiss(b *testing.B) {
	for _, way := range []struct {
		name string
		next func(at, count int) int // which stream makes a request
		done func(b *testing.B, s *vram.Stream, x vram.Buffer)
	}{
		{"returned", func(_, count int) int { return count / 2 }, func(b *testing.B, s *vram.Stream, x vram.Buffer) {
			b.Helper()
			require.NoError(b, x.Free())
			require.NoError(b, s.Trim(b.Context()))
		}},
		{"turns", func(at, count int) int { return at % count }, func(b *testing.B, _ *vram.Stream, x vram.Buffer) {
			b.Helper()
			require.NoError(b, x.Free())
		}},
		{"growth", func(_, count int) int { return count / 2 }, func(*testing.B, *vram.Stream, vram.Buffer) {}},
	} {
		for _, liveBytes := range []int64{0, 4 * kib} {
			for _, count := range []int{10, 300, 3000} {
				b.Run(fmt.Sprintf("way=%s/live=%d/streams=%d", way.name, liveBytes, count), func(b *testing.B) {
					_, streams := manyStreams(b, count, liveBytes)
					var took []time.Duration
					for at := 0; b.Loop(); at++ {
						s := streams[way.next(at, count)]
						begin := time.Now()
						x, err := s.Alloc(8 * mib)
						took = append(took, time.Since(begin))
						require.NoError(b, err)
						way.done(b, s, x)
					}
					b.ReportMetric(float64(median(took)), "p50-ns")
				})
			}
		}
	}
}

// BenchmarkOpenStreams opens streams of a device. An operation is one stream.
func BenchmarkOpenStreams(b *testing.B) {
	for _, count := range []int{10, 300, 3000} {
		b.Run(fmt.Sprintf("streams=%d", count), func(b *testing.B) {
			for n := 0; n < b.N; n += count {
				b.StopTimer()
				dev, _ := manyStreams(b, 1, 0)
				b.StartTimer()
				for range min(count, b.N-n) {
					_, err := dev.NewStream()
					require.NoError(b, err)
				}
				b.StopTimer()
				require.NoError(b, dev.Close())
			}
		})
	}
}

func median(all []time.Duration) time.Duration {
	all = slices.Clone(all)
	slices.Sort(all)
	return all[len(all)/2]
}
