package futures

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Properties 1 to 3 of the package comment, with every kind of party meeting on one promise.
func TestOneWinnerNoLostWakeUpNothingLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		completerCount := rapid.IntRange(0, 3).Draw(t, "completers")
		cancelerCount := rapid.IntRange(0, 2).Draw(t, "cancelers")
		if completerCount+cancelerCount == 0 {
			completerCount = 1
		}
		waiterCount := rapid.IntRange(0, 4).Draw(t, "waiters")
		chainCount := rapid.IntRange(0, 2).Draw(t, "chains")
		yields := rapid.SliceOfN(rapid.IntRange(0, 5), 12, 12).Draw(t, "yields")

		var told atomic.Int64
		p := NewPromise[int](func() { told.Add(1) })
		f := p.Future()
		var winners, cancels, keptSum, deliveredSum atomic.Int64
		var group sync.WaitGroup
		party := 0
		spawn := func(fn func()) {
			yieldCount := yields[party%len(yields)]
			party++
			group.Go(func() {
				for range yieldCount {
					runtime.Gosched()
				}
				fn()
			})
		}
		for i := range completerCount {
			v := 1 << i
			spawn(func() {
				if p.Complete(v, nil) {
					winners.Add(1)
					deliveredSum.Add(int64(v))
				} else {
					keptSum.Add(int64(v))
				}
			})
		}
		for range cancelerCount {
			spawn(func() {
				if f.Cancel() {
					winners.Add(1)
					cancels.Add(1)
				}
			})
		}
		answers := make(chan int, waiterCount+chainCount)
		note := func(v int, err error) {
			if errors.Is(err, ErrCanceled) {
				v = 0
			}
			answers <- v
		}
		for range waiterCount {
			spawn(func() { note(f.Await(context.Background())) })
		}
		for range chainCount {
			spawn(func() {
				note(Then(f, func(v int) (int, error) { return v, nil }).Await(context.Background()))
			})
		}
		group.Wait()

		require.EqualValues(t, 1, winners.Load())
		require.Equal(t, cancels.Load(), told.Load())
		require.EqualValues(t, 1<<completerCount-1, keptSum.Load()+deliveredSum.Load())
		for range waiterCount + chainCount {
			require.EqualValues(t, deliveredSum.Load(), <-answers)
		}
	})
}

// A wait that is given up must not take the wake-up of another with it.
func TestWaitsThatEndWhileTheAnswerArrives(t *testing.T) {
	for range 2000 {
		var p Promise[int]
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			v, err := p.Future().Await(ctx)
			if err == nil {
				assert.Equal(t, 1, v)
			} else {
				assert.ErrorIs(t, err, context.Canceled)
			}
		})
		group.Go(func() {
			v, err := p.Future().Await(context.Background())
			assert.NoError(t, err)
			assert.Equal(t, 1, v)
		})
		group.Go(func() { <-p.Future().Done() })
		group.Go(cancel)
		group.Go(func() { p.Complete(1, nil) })
		group.Wait()
	}
}
