package bench

import (
	"errors"

	"github.com/go-vram/vram/internal/fence"
)

// fencesGroups has marks of a point in a stream's order and looks whether the device has got there. Count is the number of
// looks at each mark.
func fencesGroups(o Options) []group {
	if !o.wants(ImplVRAM) {
		return nil
	}
	var groups []group
	for _, looks := range []int{1, 2, 8} {
		groups = append(groups, group{{named(Row{Count: looks, Goroutines: 1}, ImplEvents), func() (*load, error) { return fenceLoad(o, looks) }}})
	}
	return groups
}

// fenceLoad is marks on one stream.
func fenceLoad(o Options, looks int) (*load, error) {
	device, err := o.NewDriver().Open(o.Config.Ordinal)
	if err != nil {
		return nil, err
	}
	stream, err := device.StreamCreate()
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	fences := fence.NewEvents(device)
	marks := func(count int) error {
		for range count {
			m, err := fences.Record(stream)
			if err != nil {
				return err
			}
			for range looks {
				if _, err := fences.Passed(m); err != nil {
					return err
				}
			}
			if err := fences.Release(m); err != nil {
				return err
			}
		}
		return nil
	}
	return &load{
		close: func() error {
			return errors.Join(device.StreamSynchronize(stream), fences.Close(), device.StreamDestroy(stream), device.Close())
		},
		run:    func(count int) (repetition, error) { return o.alone(count, func() error { return marks(count) }) },
		sample: func(nanos []float64) error { return timed(nanos, func() error { return marks(1) }) },
	}, nil
}
