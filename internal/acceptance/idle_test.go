package acceptance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A stream that is used once, as for a warm-up or a copy, does not keep gigabytes: after two
// seconds without use all of it can be had by others, and goes back to the driver where the pool's
// budget says so.
func TestAStreamUsedOnceKeepsNothing(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	for name, adopted := range map[string]bool{"a stream of the device's": false, "an adopted stream": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, vram.Config{PoolCacheBytes: 64 * mib}, sim.Config{})
				once, handle := h.stream(), vram.StreamHandle(0)
				if adopted {
					var err error
					handle, err = h.gpu.StreamCreate()
					require.NoError(t, err)
					once, err = h.AdoptStream(handle)
					require.NoError(t, err)
				}
				var all []vram.Buffer
				for range 20 {
					all = append(all, must(t, once, 200*mib), must(t, once, 3*kib), must(t, once, 40*mib))
				}
				freeAll(t, all...)
				if adopted { // a caller's turn after the frees leaves the fence for the rest
					<-time.After(150 * time.Millisecond)
					freeAll(t, must(t, once, 70*kib))
				}
				assert.GreaterOrEqual(t, h.Stats().ReservedBytes, 4*gib)
				<-time.After(2500 * time.Millisecond)
				synctest.Wait()
				n := h.addsUp()
				assert.LessOrEqual(t, n.ReservedBytes, 256*mib, "the budget, and a handle of which a page is kept")
				assert.LessOrEqual(t, n.CachedBytes, 8*mib)
				freeAll(t, must(t, once, 200*mib))
			})
		})
	}
}

// A stream at work keeps its cache, whether magazines or ranges serve it.
func TestAStreamAtWorkKeepsItsCache(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1))
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		s := h.stream()
		freeAll(t, must(t, s, gib))
		for range 40 { // a magazine's blocks, and nothing else, for four seconds
			freeAll(t, must(t, s, 4*kib))
			<-time.After(100 * time.Millisecond)
		}
		calls := h.driverCalls()
		freeAll(t, must(t, s, gib-2*mib)) // without the span of the small ones
		assert.Equal(t, calls, h.driverCalls())
	})
}
