package cuda_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// BenchmarkReaders counts the driver calls of a launch that reads a buffer of another stream, while a number of streams take
// turns to read it.
func BenchmarkReaders(b *testing.B) {
	for _, frozen := range []bool{false, true} {
		for _, count := range []int{1, 2, 4, 8, 16} {
			b.Run("frozen="+strconv.FormatBool(frozen)+"/readers="+strconv.Itoa(count), func(b *testing.B) {
				faults := fault.Wrap(sim.New(sim.Config{TimedKernels: true}))
				dev, err := vram.Open(vram.Config{Driver: faults})
				require.NoError(b, err)
				var contexts []*cuda.Context
				for range count + 1 {
					s, err := dev.NewStream()
					require.NoError(b, err)
					c, err := cuda.NewContext(s)
					require.NoError(b, err)
					contexts = append(contexts, c)
				}
				owner, readers := contexts[0], contexts[1:]
				m, err := owner.LoadModule([]byte(ptx))
				require.NoError(b, err)
				touch, err := m.Function("touch")
				require.NoError(b, err)
				table, err := owner.AllocZeroed(mib)
				require.NoError(b, err)
				if frozen {
					require.NoError(b, owner.Freeze(table))
				}
				for _, c := range readers {
					require.NoError(b, c.Launch(touch, oneThread, cuda.In(table)))
				}
				var calls, launches atomic.Int64
				faults.SetBefore(func(string) { calls.Add(1) })
				b.ReportAllocs()
				for b.Loop() {
					for _, c := range readers {
						_ = c.Launch(touch, oneThread, cuda.In(table))
						launches.Add(1)
					}
				}
				faults.SetBefore(nil)
				b.ReportMetric(float64(calls.Load())/float64(launches.Load()), "calls/launch")
				require.NoError(b, table.Free())
				for _, c := range contexts {
					require.NoError(b, c.Close())
				}
				require.NoError(b, dev.Close())
			})
		}
	}
}
