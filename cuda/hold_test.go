package cuda

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Goroutines whose graphs get kernels of a module while others unload it: a graph has a kernel, or the module is unloaded, never both.
func TestGoroutinesHoldAndUnloadAModule(t *testing.T) {
	const rounds = 400_000
	var m Module
	var all sync.WaitGroup
	var held, unloaded atomic.Int64
	for range max(2, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := range rounds {
				if m.hold() == nil {
					held.Add(1)
					m.release()
				}
				if m.graphs.CompareAndSwap(0, unloadedModule) { // as Unload begins, and ends where the driver refuses
					unloaded.Add(1)
					if !assert.Equal(t, unloadedModule, m.graphs.Load()) {
						return
					}
					m.graphs.Store(0)
				}
				if i%1024 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	require.Positive(t, held.Load())
	require.Positive(t, unloaded.Load())
	assert.Zero(t, m.graphs.Load())
}
