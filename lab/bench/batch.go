package bench

import (
	"time"

	"github.com/go-vram/vram"
)

// batchCounts returns the batches of the scenario batch: the buffers of a layer, and of a model.
func batchCounts() []int { return []int{64, 1000} }

// mixedSizes returns the sizes that a mixed batch repeats: biases, weights and an activation of a small transformer.
func mixedSizes() []int64 {
	return []int64{3 << 10, 4 << 10, 12 << 10, 48 << 10, 64 << 10, 768 << 10, 2304 << 10, 3 << 20}
}

// batchGroups compares buffers that are allocated and freed together with the same ones one by one. An operation is one buffer
// of a batch: its part of the allocation and of the free.
func batchGroups(o Options) []group {
	if !o.wants(ImplVRAM) {
		return nil
	}
	var groups []group
	for _, count := range batchCounts() {
		for _, sizes := range [][]int64{{smallBytes}, mixedSizes()} {
			row := Row{Count: count, Goroutines: 1}
			if len(sizes) == 1 {
				row.SizeBytes = sizes[0]
			}
			groups = append(groups, group{
				{named(row, ImplVRAM), func() (*load, error) { return batchLoad(o, count, sizes, together()) }},
				{named(row, ImplVRAMAlloc), func() (*load, error) { return batchLoad(o, count, sizes, oneByOne()) }},
			})
		}
	}
	return groups
}

// manner is a way to allocate and free the buffers of dst.
type manner struct {
	alloc func(s *vram.Stream, dst []vram.Buffer, bytes []int64) error
	free  func(s *vram.Stream, dst []vram.Buffer) error
}

func together() manner { return manner{(*vram.Stream).AllocBatch, (*vram.Stream).FreeBatch} }

func oneByOne() manner {
	return manner{
		alloc: func(s *vram.Stream, dst []vram.Buffer, bytes []int64) error {
			for i, n := range bytes {
				b, err := s.Alloc(n)
				if err != nil {
					return err
				}
				dst[i] = b
			}
			return nil
		},
		free: func(_ *vram.Stream, dst []vram.Buffer) error {
			for i := range dst {
				if err := dst[i].Free(); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func batchLoad(o Options, count int, sizes []int64, do manner) (*load, error) {
	device, stream, err := openStream(o)
	if err != nil {
		return nil, err
	}
	dst, bytes := make([]vram.Buffer, count), make([]int64, count)
	for i := range bytes {
		bytes[i] = sizes[i%len(sizes)]
	}
	return &load{
		close: device.Close,
		run: func(pairs int) (repetition, error) {
			times := (pairs + count - 1) / count
			return o.alone(times*count, func() error {
				for range times {
					if err := do.alloc(stream, dst, bytes); err != nil {
						return err
					}
					if err := do.free(stream, dst); err != nil {
						return err
					}
				}
				return nil
			})
		},
		samplePairs: count,
		sample: func(nanos []float64) error {
			for i := range nanos {
				start := time.Now()
				err := do.alloc(stream, dst, bytes)
				nanos[i] = float64(time.Since(start))
				if err == nil {
					err = do.free(stream, dst)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}
