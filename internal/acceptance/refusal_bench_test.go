//go:build unix

package acceptance_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// BenchmarkRefusal is requests for which there is no memory, from so many goroutines at once,
// while live buffers fill the limit. An operation is one refused request; each goroutine
// makes its share of them one after the other.
func BenchmarkRefusal(b *testing.B) {
	const liveBuffers = 20_000
	for _, holders := range []struct {
		streams int
		charged bool
	}{{1, false}, {1, true}, {8, false}} {
		for _, count := range []int{1, 1_000, 5_000} {
			name := fmt.Sprintf("impl=vram/streams=%d/charged=%t/live=%d/goroutines=%d", holders.streams, holders.charged, liveBuffers, count)
			b.Run(name, func(b *testing.B) {
				streamCount := holders.streams
				dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: liveBuffers*64*kib + 2*mib*int64(streamCount)})
				require.NoError(b, err)
				defer dev.Close() // its error lists the live buffers
				streams := make([]*vram.Stream, streamCount)
				for i := range streams {
					streams[i], err = dev.NewStream()
					require.NoError(b, err)
				}
				var tenant *vram.Tenant
				if holders.charged {
					tenant, err = dev.Tenant("tenant", vram.Quota{})
					require.NoError(b, err)
				}
				for i := range liveBuffers {
					_, err = streams[i%streamCount].AllocFor(b.Context(), vram.Request{Bytes: 64 * kib, Tenant: tenant})
					require.NoError(b, err)
				}
				for _, s := range streams { // the rest of the last pages
					for err == nil {
						_, err = s.AllocFor(b.Context(), vram.Request{Bytes: 64 * kib, Tenant: tenant})
					}
					err = nil
				}
				b.ReportAllocs()
				b.ResetTimer()
				before := cpuTime(b)
				start := make(chan struct{})
				var all sync.WaitGroup
				for i := range min(count, b.N) {
					all.Go(func() {
						<-start
						for range (b.N - i + count - 1) / count { // of b.N requests the share of this goroutine
							if x, err := streams[i%streamCount].Alloc(64 * kib); err == nil {
								b.Error("served", x)
							}
						}
					})
				}
				close(start)
				all.Wait()
				b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// cpuTime is the processor time of the process: on a busy machine it is a better measure than a
// clock.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var r syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
