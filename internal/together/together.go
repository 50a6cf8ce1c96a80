// Package together has tests run functions on goroutines that begin at the same moment.
package together

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// spins is how often a goroutine looks for the others before it lets them run.
const spins = 1000

// Run calls f with each number below count, on as many goroutines, and returns when all calls have returned. The goroutines spin until the last one
// is there: a channel would wake them one after the other.
func Run(count int, f func(number int)) {
	var all sync.WaitGroup
	var ready atomic.Int64
	for number := range count {
		all.Go(func() {
			ready.Add(1)
			for n := 0; ready.Load() < int64(count); n++ {
				if n > spins {
					runtime.Gosched()
				}
			}
			f(number)
		})
	}
	all.Wait()
}

// Funcs calls functions as Run does.
func Funcs(all ...func()) { Run(len(all), func(number int) { all[number]() }) }
