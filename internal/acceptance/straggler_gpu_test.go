//go:build gpu && linux && (amd64 || arm64)

package acceptance_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// On a GPU: while one stream has work for a second or more, the allocations of another take as long
// as alone, and its own work is over long before.
func TestHardwareNobodyWaitsForAKernel(t *testing.T) {
	driver := dynamic.New(dynamic.Config{})
	gpu, err := driver.Open(0)
	require.NoError(t, err)
	defer func() { require.NoError(t, gpu.Close()) }()
	work, err := gpu.MemAlloc(16 << 30)
	require.NoError(t, err)
	defer func() { require.NoError(t, gpu.MemFree(work)) }()
	for _, mode := range []vram.Footprint{vram.Lean, vram.Balanced, vram.Fast} {
		for _, waits := range []vram.Waits{vram.WaitsNever, vram.WaitsAvoidGrowth} {
			device, err := vram.Open(vram.Config{Driver: driver, Footprint: mode, Waits: waits, LimitBytes: 64 << 30})
			require.NoError(t, err)
			slow, quick := streamOf(t, device), streamOf(t, device)
			random := rand.New(rand.NewPCG(1, 2))
			var latest time.Duration
			begin := time.Now()
			for range 200 {
				x := must(t, slow, 1+random.Int64N(64*mib))
				require.NoError(t, gpu.MemsetD8Async(work, 1, 16<<30, slow.Handle())) // some 4 ms
				freeAll(t, x)
				before := time.Now()
				y := must(t, quick, 1+random.Int64N(64*mib))
				latest = max(latest, time.Since(before))
				freeAll(t, y)
			}
			require.NoError(t, gpu.MemsetD8Async(work, 2, 1, quick.Handle()))
			require.NoError(t, gpu.StreamSynchronize(quick.Handle()))
			quickTook := time.Since(begin)
			require.NoError(t, gpu.StreamSynchronize(slow.Handle()))
			slowTook := time.Since(begin)
			t.Logf("%v, waits %v: longest allocation %v, the quick stream's work %v, the slow one's %v, peak %d MiB", mode, waits, latest, quickTook,
				slowTook, device.Stats().PeakReservedBytes>>20)
			if waits == vram.WaitsNever {
				assert.Less(t, latest, slowTook/10)
				assert.Less(t, quickTook, slowTook/2)
			}
			require.NoError(t, device.Close())
		}
	}
}
