//go:build linux && (amd64 || arm64)

package dynamic

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Goroutines that queue functions at the same time get calls of their own, in blocks that are kept: C has addresses in them.
func TestManyGoroutinesQueueHostFunctions(t *testing.T) {
	const goroutines, each = 4, hostCallCount // four blocks
	for range 30 {
		first := newHostCalls()
		var taken [goroutines][each]*hostCall
		var calls [goroutines * each]int
		var all sync.WaitGroup
		begin := make(chan struct{})
		for g := range goroutines {
			all.Go(func() {
				<-begin
				for i := range each {
					taken[g][i] = first.take(func() { calls[g*each+i]++ })
				}
			})
		}
		close(begin)
		all.Wait()
		kept := map[*hostCalls]bool{}
		for h := first; h != nil; h = h.next.Load() {
			kept[h] = true
			assert.Zero(t, h.free.Load())
		}
		require.Len(t, kept, goroutines)
		for _, of := range taken {
			for _, c := range of {
				require.True(t, kept[c.home], "a block that C uses was given up")
				runHostCall(c)
			}
		}
		for i := range calls {
			require.Equal(t, 1, calls[i])
		}
	}
}
