package bench

import (
	"errors"

	"github.com/go-vram/vram"
)

// useSizes returns the sizes of the scenarios with a second stream.
func useSizes() []int64 { return []int64{4 << 10, 1 << 20, 16 << 20, 128 << 20} }

// sharing runs between the allocation and the free of a pair; it returns the buffer to be freed.
type sharing func(b vram.Buffer, other *vram.Stream) (vram.Buffer, error)

func recordGroups(o Options) []group {
	return o.sharingGroups(func(b vram.Buffer, other *vram.Stream) (vram.Buffer, error) {
		return b, b.RecordStream(other)
	})
}

func useGroups(o Options) []group {
	return o.sharingGroups(func(b vram.Buffer, other *vram.Stream) (vram.Buffer, error) {
		u, err := b.Use(other)
		if err != nil {
			return b, err
		}
		return b, u.Done()
	})
}

func transferGroups(o Options) []group {
	return o.sharingGroups(func(b vram.Buffer, other *vram.Stream) (vram.Buffer, error) { return b.Transfer(other) })
}

func (o *Options) sharingGroups(share sharing) []group {
	if !o.wants(ImplVRAM) {
		return nil
	}
	var groups []group
	for _, sizeBytes := range useSizes() {
		driverCalls := 0.0
		row := Row{Impl: ImplVRAM, SizeBytes: sizeBytes, Count: 1, Goroutines: 1, DriverCallsPerOp: &driverCalls}
		groups = append(groups, group{{row, func() (*load, error) { return sharedLoad(*o, sizeBytes, share) }}})
	}
	return groups
}

// sharedLoad is pairs on one stream whose buffers another uses.
func sharedLoad(o Options, sizeBytes int64, share sharing) (*load, error) {
	device, stream, err := openStream(o)
	if err != nil {
		return nil, err
	}
	other, err := device.NewStream()
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	pairs := func(count int) error {
		for range count {
			b, err := stream.Alloc(sizeBytes)
			if err != nil {
				return err
			}
			if b, err = share(b, other); err != nil {
				return err
			}
			if err := b.Free(); err != nil {
				return err
			}
		}
		return nil
	}
	return &load{
		close:    device.Close,
		counters: func() counters { return countersOf(device) },
		run:      func(count int) (repetition, error) { return o.alone(count, func() error { return pairs(count) }) },
		sample:   func(nanos []float64) error { return timed(nanos, func() error { return pairs(1) }) },
	}, nil
}
