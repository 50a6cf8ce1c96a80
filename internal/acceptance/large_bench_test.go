package acceptance_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

// BenchmarkLarge allocates and frees blocks beyond the size classes on one stream: each of some
// goroutines a block at a time (pair), four at a time of which the oldest is replaced (ring), or
// blocks of two lengths in the order in which they were allocated (two).
func BenchmarkLarge(b *testing.B) {
	rounds := map[string]func(s *vram.Stream, bytes int64, n int) error{"pair": pairs, "ring": ring, "two": twoLengths}
	for _, shape := range []string{"pair", "ring", "two"} {
		for _, bytes := range []int64{mib, 4 * mib, 64 * mib} {
			for _, goroutines := range []int{1, 4, 16, 64} {
				b.Run(fmt.Sprintf("shape=%s/bytes=%d/goroutines=%d", shape, bytes, goroutines), func(b *testing.B) {
					s := benchStream(b, vram.Config{})
					round := rounds[shape]
					require.NoError(b, onGoroutines(goroutines, func() error { return round(s, bytes, 4096/goroutines) }))
					b.ReportAllocs()
					b.ResetTimer()
					require.NoError(b, onGoroutines(goroutines, func() error { return round(s, bytes, b.N/goroutines+1) }))
				})
			}
		}
	}
}

// onGoroutines runs the work on that many goroutines and returns an error of one of them.
func onGoroutines(goroutines int, work func() error) error {
	errs := make(chan error, goroutines)
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() { errs <- work() })
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func pairs(s *vram.Stream, bytes int64, n int) error {
	for range n {
		x, err := s.Alloc(bytes)
		if err != nil {
			return err
		}
		if err := x.Free(); err != nil {
			return err
		}
	}
	return nil
}

func ring(s *vram.Stream, bytes int64, n int) error {
	var live [4]vram.Buffer
	for i := range n {
		at := &live[i%len(live)]
		if i >= len(live) {
			if err := at.Free(); err != nil {
				return err
			}
		}
		var err error
		if *at, err = s.Alloc(bytes); err != nil {
			return err
		}
	}
	for i := range min(n, len(live)) {
		if err := live[i].Free(); err != nil {
			return err
		}
	}
	return nil
}

func twoLengths(s *vram.Stream, bytes int64, n int) error {
	for range n / 2 {
		x, err := s.Alloc(bytes)
		if err != nil {
			return err
		}
		y, err := s.Alloc(bytes + bytes/2)
		if err != nil {
			return err
		}
		if err := x.Free(); err != nil {
			return err
		}
		if err := y.Free(); err != nil {
			return err
		}
	}
	return nil
}
