package acceptance_test

import (
	"fmt"
	"testing"

	"github.com/go-vram/vram"
)

// BenchmarkSampledPair is a pair, allocation and free, without samples, at the default rate, and
// with each buffer sampled.
func BenchmarkSampledPair(b *testing.B) {
	for _, bytes := range []int64{4 * kib, 64 * kib, mib, 8 * mib, 64 * mib} {
		for _, rate := range []struct {
			name  string
			bytes int64
		}{{"off", 0}, {"default", vram.DefaultSampleBytes}, {"all", 1}} {
			s := benchStream(b, vram.Config{SampleBytes: rate.bytes})
			b.Run(fmt.Sprintf("impl=stream/bytes=%d/sampling=%s", bytes, rate.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					x, err := s.Alloc(bytes)
					if err != nil || x.Free() != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
