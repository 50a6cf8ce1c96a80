package bench

import (
	"context"
	"time"

	"github.com/go-vram/vram/futures"
)

// answer is one request that another goroutine answers.
type answer interface {
	complete()
	wait(ctx context.Context)
}

// promised answers through a promise, channeled through a bare channel.
type (
	promised  struct{ promise *futures.Promise[int] }
	channeled struct{ channel chan int }
)

func (a promised) complete() { a.promise.Complete(1, nil) }

func (a promised) wait(ctx context.Context) { _, _ = a.promise.Future().Await(ctx) }

func (a channeled) complete() { a.channel <- 1 }

func (a channeled) wait(ctx context.Context) {
	select {
	case <-a.channel:
	case <-ctx.Done():
	}
}

// newAnswer makes one of either kind.
func newAnswer[A answer]() A {
	var a A
	switch a := any(&a).(type) {
	case *promised:
		a.promise = new(futures.Promise[int])
	case *channeled:
		a.channel = make(chan int, 1)
	}
	return a
}

// wakeWait is how long the completer works before it answers: as long as the simulated driver takes for a job, and longer
// than any waiter probes.
const wakeWait = 5 * time.Microsecond

// wakeLoad has a goroutine answer requests one by one, as the worker of an actor does. A latency is the time from right
// before the completion until the waiter runs.
func wakeLoad[A answer](o Options) *load {
	pass := func(count int, nanos []float64) (repetition, error) {
		ctx, cancel := context.WithCancel(context.Background()) // one that could end
		defer cancel()
		requests := make(chan A)
		var completed time.Time // written before the completion, read after the wake-up
		r, err := o.together(2, func(member int) error {
			if member == 1 {
				for a := range requests {
					work(wakeWait)
					completed = time.Now()
					a.complete()
				}
				return nil
			}
			defer close(requests)
			for i := range count {
				a := newAnswer[A]()
				requests <- a
				a.wait(ctx)
				if nanos != nil {
					nanos[i] = float64(time.Since(completed))
				}
			}
			return nil
		})
		r.pairs = count
		return r, err
	}
	return &load{
		close: func() error { return nil },
		run:   func(count int) (repetition, error) { return pass(min(count, mostWaits), nil) },
		sample: func(nanos []float64) error {
			_, err := pass(len(nanos), nanos)
			return err
		},
	}
}
