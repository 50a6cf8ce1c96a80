package futures

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// busyFor keeps the goroutine's processor.
func busyFor(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// BenchmarkWake takes the time from right before a completion until the waiter runs: of the
// promise, and of a bare channel as the baseline. waited is how long the completer is busy before:
// after a hundred microseconds the waiter's processor sleeps. busy is how long it is busy
// afterwards; 0 is the case of an actor's worker, which waits for the next request.
func BenchmarkWake(b *testing.B) {
	for _, waited := range []time.Duration{0, 5 * time.Microsecond, 20 * time.Microsecond, 100 * time.Microsecond} {
		for _, busy := range []time.Duration{0, 5 * time.Microsecond} {
			for _, impl := range []string{"channel", "future"} {
				b.Run(fmt.Sprintf("waited=%v/busy=%v/impl=%s", waited, busy, impl), func(b *testing.B) { wake(b, impl, waited, busy) })
			}
		}
	}
}

func wake(b *testing.B, impl string, waited, busy time.Duration) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // a context that could end
	defer cancel()
	type request struct {
		promise Promise[block]
		channel chan block
	}
	requests := make(chan *request)
	var completed time.Time // Written before the completion, read after the wake-up.
	go func() {
		for r := range requests {
			if waited > 0 {
				busyFor(waited)
			}
			completed = time.Now()
			if r.channel != nil {
				r.channel <- block{}
			} else {
				r.promise.Complete(block{}, nil)
			}
			if busy > 0 {
				busyFor(busy)
			}
		}
	}()
	var nanos []float64
	for b.Loop() {
		r := new(request)
		if impl == "channel" {
			r.channel = make(chan block, 1)
		}
		requests <- r
		if r.channel != nil {
			select {
			case <-r.channel:
			case <-ctx.Done():
			}
		} else if _, err := r.promise.Future().Await(ctx); err != nil {
			b.Fatal(err)
		}
		nanos = append(nanos, float64(time.Since(completed)))
	}
	close(requests)
	slices.Sort(nanos)
	b.ReportMetric(nanos[len(nanos)/2], "p50-ns")
	b.ReportMetric(nanos[len(nanos)*99/100], "p99-ns")
	b.ReportMetric(0, "ns/op") // of no meaning here
}
