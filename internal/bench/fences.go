package bench

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
)

// fencesGroups has the ways to mark a point in a stream's order and to see whether the device has got there, in turns.
// Count is the number of looks at each mark. Words are left out where the device's streams cannot write them.
func fencesGroups(o Options) []group {
	if !o.wants(ImplVRAM) {
		return nil
	}
	var groups []group
	for _, looks := range []int{1, 2, 8} {
		row := Row{Count: looks, Goroutines: 1}
		g := group{{named(row, ImplEvents), func() (*load, error) { return fenceLoad(o, looks, takeEvents) }}}
		if o.writesWords() {
			g = append(g, contender{named(row, ImplWords), func() (*load, error) { return fenceLoad(o, looks, takeWords) }})
		}
		groups = append(groups, g)
	}
	return groups
}

func takeEvents(d cudadrv.Device) (fence.Source, error) { return fence.NewEvents(d), nil }

func takeWords(d cudadrv.Device) (fence.Source, error) { return fence.NewWords(d) }

// writesWords reports whether the device's streams write words. A device that cannot be opened says why later.
func (o *Options) writesWords() bool {
	device, err := o.NewDriver().Open(o.Config.Ordinal)
	if err != nil {
		return false
	}
	_, err = fence.NewWords(device)
	return errors.Join(err, device.Close()) == nil
}

// fenceLoad is marks on one stream.
func fenceLoad(o Options, looks int, source func(cudadrv.Device) (fence.Source, error)) (*load, error) {
	device, err := o.NewDriver().Open(o.Config.Ordinal)
	if err != nil {
		return nil, err
	}
	stream, err := device.StreamCreate()
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	fences, err := source(device)
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
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
