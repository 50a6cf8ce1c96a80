package futures

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
)

// BenchmarkCalibration is the machine's price of one uncontended compare-and-swap and one atomic
// OR: the unit of the table in the package comment.
func BenchmarkCalibration(b *testing.B) {
	var word atomic.Uint64
	for b.Loop() {
		mask := word.Load()
		word.CompareAndSwap(mask, mask&^1)
		word.Or(1)
	}
}

func BenchmarkComplete(b *testing.B) {
	ctx := context.Background()
	b.Run("impl=future", func(b *testing.B) {
		b.ReportAllocs()
		var sum uint64
		for b.Loop() {
			v, _ := answer(sum).Await(ctx)
			sum += v.bytes
		}
	})
	b.Run("impl=channel", func(b *testing.B) {
		b.ReportAllocs()
		var sum uint64
		for b.Loop() {
			c := make(chan block, 1)
			c <- block{bytes: 1}
			sum += (<-c).bytes
		}
	})
	b.Run("impl=promise", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p := new(Promise[block])
			p.Complete(block{}, nil)
			_, _ = p.Future().Await(ctx)
		}
	})
}

//go:noinline
func answer(slot uint64) Future[block] { return Done(block{slot: slot, bytes: 1}) }

func BenchmarkCancel(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		new(Promise[block]).Future().Cancel()
	}
}

// BenchmarkAcrossGoroutines is a request and its answer by another goroutine.
func BenchmarkAcrossGoroutines(b *testing.B) {
	ctx := context.Background()
	b.Run("impl=future", func(b *testing.B) {
		b.ReportAllocs()
		requests := make(chan *Promise[block])
		go func() {
			for p := range requests {
				p.Complete(block{}, nil)
			}
		}()
		for b.Loop() {
			p := new(Promise[block])
			requests <- p
			_, _ = p.Future().Await(ctx)
		}
		close(requests)
	})
	b.Run("impl=channel", func(b *testing.B) {
		b.ReportAllocs()
		requests := make(chan chan block)
		go func() {
			for c := range requests {
				c <- block{}
			}
		}()
		for b.Loop() {
			c := make(chan block, 1)
			requests <- c
			select {
			case <-c:
			case <-ctx.Done():
			}
		}
		close(requests)
	})
}

// A pending source is measured, too, with its completion and the wait for the result.
func BenchmarkThen(b *testing.B) {
	ctx := context.Background()
	b.Run("source=complete", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = Then(Done(1), double).Await(ctx)
		}
	})
	b.Run("source=pending", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var p Promise[int]
			f := Then(p.Future(), double)
			p.Complete(1, nil)
			_, _ = f.Await(ctx)
		}
	})
}

func BenchmarkAll(b *testing.B) {
	gathering(b, func(fs []Future[block], then func()) bool {
		f := All(nil, fs...)
		then()
		return f.Completed()
	})
}

func BenchmarkFirst(b *testing.B) {
	gathering(b, func(fs []Future[block], then func()) bool {
		f := First(nil, fs...)
		then()
		return f.Completed()
	})
}

// gathering measures a call over parts that are complete, or that are completed afterwards on the
// same goroutine: then the promises of the parts are measured, too.
func gathering(b *testing.B, gather func(fs []Future[block], then func()) (completed bool)) {
	b.Helper()
	for _, partCount := range []int{2, 64} {
		fs := make([]Future[block], partCount)
		b.Run(fmt.Sprintf("parts=complete/n=%d", partCount), func(b *testing.B) {
			for i := range fs {
				fs[i] = Done(block{})
			}
			b.ReportAllocs()
			for b.Loop() {
				if !gather(fs, func() {}) {
					b.Fatal("pending")
				}
			}
		})
		b.Run(fmt.Sprintf("parts=pending/n=%d", partCount), func(b *testing.B) {
			promises := make([]*Promise[block], partCount)
			b.ReportAllocs()
			for b.Loop() {
				for i := range promises {
					promises[i] = new(Promise[block])
					fs[i] = promises[i].Future()
				}
				if !gather(fs, func() { finish(promises) }) {
					b.Fatal("pending")
				}
			}
		})
	}
}
