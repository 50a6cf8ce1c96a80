package bench

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"
)

// together runs work on count goroutines, of which the caller is one, and takes the time from their
// common start to the end of the last. It spins: see the package doc.
func (o *Options) together(count int, work func(member int) error) (repetition, error) {
	var ready, done atomic.Int64
	var begun atomic.Bool
	errs := make([]error, count)
	others := int64(count - 1)
	for member := 1; member < count; member++ {
		go func() {
			ready.Add(1)
			for !begun.Load() {
				runtime.Gosched()
			}
			errs[member] = work(member)
			done.Add(1)
		}()
	}
	for ready.Load() < others {
		runtime.Gosched()
	}
	before := mallocCount()
	if o.Begin != nil && *o.measuring {
		o.Begin()
	}
	start := time.Now()
	begun.Store(true)
	errs[0] = work(0)
	for done.Load() < others {
		runtime.Gosched()
	}
	elapsed := time.Since(start)
	if o.End != nil && *o.measuring {
		o.End()
	}
	return repetition{elapsed: elapsed, mallocs: mallocCount() - before}, errors.Join(errs...)
}

// alone is together for one goroutine.
func (o *Options) alone(pairs int, work func() error) (repetition, error) {
	r, err := o.together(1, func(int) error { return work() })
	r.pairs = pairs
	return r, err
}
