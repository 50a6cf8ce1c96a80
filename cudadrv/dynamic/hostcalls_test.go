//go:build linux && (amd64 || arm64)

package dynamic

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A place is free only once its function has been taken out: a function that another goroutine puts there at that moment is not
// lost, and none runs twice.
func TestAPlaceThatBecomesFreeKeepsTheNextFunction(t *testing.T) {
	const goroutines, rounds = 4, 5000
	h := newHostCalls()
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range rounds {
				var ran atomic.Int32
				c := h.take(func() { ran.Add(1) })
				if f := c.give(); assert.NotNil(t, f, "the function was lost") {
					f()
				}
				if !assert.EqualValues(t, 1, ran.Load(), "the place had another function") {
					return
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, ^uint64(0), h.free.Load(), "every place is free again")
}
