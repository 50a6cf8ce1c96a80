//go:build !race

package streams

import (
	"sync/atomic"
	"testing"

	"github.com/go-vram/vram/internal/stream/core"
)

// An allocation and its free by one goroutine: the machine's price of two atomic operations,
// through the stream, and through a lane.
func BenchmarkLane(b *testing.B) {
	b.Run("impl=calibration", func(b *testing.B) {
		w := new([48]atomic.Uint64)
		mask := &w[16]
		for b.Loop() {
			twoAtomics(mask)
		}
	})
	for _, size := range []struct {
		name  string
		bytes int64
	}{{"512", 512}, {"4096", 4 * kib}, {"1048576", mib}, {"134217728", 128 * mib}} {
		r := newRig(b, 1024*mib)
		s := r.stream(core.Budget{})
		lane, err := s.Lane(256 * mib)
		if err != nil {
			b.Fatal(err)
		}
		for range 20 { // until the size has its place
			if through(s.Alloc, Buffer.Free, size.bytes) != nil || through(lane.Alloc, lane.Free, size.bytes) != nil {
				b.Fatal("a pair failed")
			}
		}
		b.Run("impl=stream/bytes="+size.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buffer, err := s.Alloc(size.bytes)
				if err != nil || buffer.Free() != nil {
					b.Fatal("a pair failed")
				}
			}
		})
		b.Run("impl=lane/bytes="+size.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buffer, err := lane.Alloc(size.bytes)
				if err != nil || lane.Free(buffer) != nil {
					b.Fatal("a pair failed")
				}
			}
		})
	}
}

// twoAtomics is a function of its own, since the loop would keep the result of the OR, which is
// another instruction then.
//
//go:noinline
func twoAtomics(mask *atomic.Uint64) {
	m := mask.Load()
	mask.CompareAndSwap(m, m&^1)
	mask.Or(1)
}

func through(alloc func(int64) (Buffer, error), free func(Buffer) error, bytes int64) error {
	b, err := alloc(bytes)
	if err != nil {
		return err
	}
	return free(b)
}
