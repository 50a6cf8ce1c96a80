package vram_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// BenchmarkRefusal is requests for which there is no memory, so many at once, beside live buffers that fill the limit. An
// operation is one refused request.
func BenchmarkRefusal(b *testing.B) {
	const liveBuffers = 20_000
	for _, streamCount := range []int{1, 8} {
		for _, count := range []int{1, 1_000, 5_000} {
			b.Run(fmt.Sprintf("impl=vram/streams=%d/live=%d/goroutines=%d", streamCount, liveBuffers, count), func(b *testing.B) {
				dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: liveBuffers*64*kib + 2*mib*int64(streamCount)})
				require.NoError(b, err)
				defer dev.Close() //nolint:errcheck // the buffers live
				streams := make([]*vram.Stream, streamCount)
				for i := range streams {
					streams[i], err = dev.NewStream()
					require.NoError(b, err)
				}
				for i := range liveBuffers {
					_, err = streams[i%streamCount].Alloc(64 * kib)
					require.NoError(b, err)
				}
				for _, s := range streams { // the rest of the last pages
					for err == nil {
						_, err = s.Alloc(64 * kib)
					}
					err = nil
				}
				b.ReportAllocs()
				b.ResetTimer()
				for done := 0; done < b.N; done += count {
					start := make(chan struct{})
					var all sync.WaitGroup
					for i := range min(count, b.N-done) {
						all.Go(func() {
							<-start
							if x, err := streams[i%streamCount].Alloc(64 * kib); err == nil {
								b.Error("served", x)
							}
						})
					}
					close(start)
					all.Wait()
				}
			})
		}
	}
}
