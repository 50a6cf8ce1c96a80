package futures

import (
	"context"
	"testing"
)

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
}

//go:noinline
func answer(slot uint64) Future[block] { return Done(block{slot: slot, bytes: 1}) }

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
