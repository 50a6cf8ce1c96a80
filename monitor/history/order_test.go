package history

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The ring keeps the latest events, also where a goroutine that has its number is overtaken by others: a place never goes back.
func TestTheRingKeepsTheLatestOfConcurrentEvents(t *testing.T) {
	const goroutines, events = 4, 200_000
	r := &Recorder{ring: make([]atomic.Pointer[Event], 1)}
	var (
		entered atomic.Uint64 // of so many events one has this number, less 1, at least
		all     sync.WaitGroup
	)
	for range goroutines {
		all.Go(func() {
			for range events {
				r.enter(Event{})
				least := entered.Add(1) - 1
				if number := r.ring[0].Load().Number; number < least {
					assert.GreaterOrEqual(t, number, least, "an older event has replaced a newer one")
					return
				}
			}
		})
	}
	all.Wait()
}
