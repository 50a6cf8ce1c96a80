package eachcall

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A cache that keeps more objects than a burst of attempts makes is no leak; an object that each attempt leaves is one.
func TestALeakGrowsForEver(t *testing.T) {
	for name, test := range map[string]struct {
		keeps int
		leaks bool
	}{
		"a cache that one burst fills": {keeps: burst / 2},
		"a cache that a burst fills":   {keeps: burst},
		"a cache that two bursts fill": {keeps: 2 * burst},
		"caches, as many as there are": {keeps: cached - 1},
		"a leak":                       {keeps: 10 * cached, leaks: true},
	} {
		t.Run(name, func(t *testing.T) {
			kept := 0
			b := &Bench{
				Faults:  fault.Wrap(sim.New(sim.Config{})),
				Left:    func() map[string]int { return map[string]int{"event": kept} },
				settles: time.Nanosecond,
			}
			more := b.leak(func() (func() error, error) {
				kept = min(kept+1, test.keeps)
				return nil, nil
			}, &calls{}, "")
			assert.Equal(t, test.leaks, more != "", more)
		})
	}
}

// The error of a query that another goroutine makes need not be an error of the operation.
func TestALookOfAnotherGoroutine(t *testing.T) {
	b, made := &Bench{Faults: fault.Wrap(sim.New(sim.Config{}))}, &calls{}
	require.NoError(t, b.attempt(func() (func() error, error) {
		made.before("cuEventQuery")
		var other sync.WaitGroup
		other.Go(func() {
			made.before("cuEventQuery")
			made.before("cuMemCreate")
		})
		other.Wait()
		return nil, nil
	}, made))
	assert.Equal(t, [...]bool{false, true, false, false}, [...]bool{made.look(1), made.look(2), made.look(3), made.look(4)})
}
