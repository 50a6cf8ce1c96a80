package bench

import (
	"errors"

	"github.com/go-vram/vram"
)

// laneBudgetBytes lets a lane keep one block of every size of the scenario.
const laneBudgetBytes = 512 << 20

// laneGroups has pairs of one size through a lane beside the same through its stream.
func laneGroups(o Options) []group {
	if !o.wants(ImplVRAM) {
		return nil
	}
	var groups []group
	for _, sizeBytes := range pairSizes() {
		row := Row{SizeBytes: sizeBytes, Count: 1, Goroutines: 1}
		groups = append(groups, group{
			{named(row, ImplVRAM), func() (*load, error) { return laneLoad(o, sizeBytes) }},
			{named(row, ImplVRAMAlloc), func() (*load, error) {
				return o.pairLoad(openVRAM(o.NewDriver, o.Config), sizeBytes, 1, false)
			}},
		})
	}
	return groups
}

func laneLoad(o Options, sizeBytes int64) (*load, error) {
	device, stream, err := openStream(o)
	if err != nil {
		return nil, err
	}
	lane, err := stream.Lane(laneBudgetBytes)
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return &load{
		close: func() error { return errors.Join(lane.Close(), device.Close()) },
		run: func(count int) (repetition, error) {
			return o.alone(count, func() error { return lanePairs(lane, sizeBytes, count) })
		},
		sample: func(nanos []float64) error {
			return timed(nanos, func() error { return lanePairs(lane, sizeBytes, 1) })
		},
	}, nil
}

func lanePairs(lane *vram.Lane, sizeBytes int64, count int) error {
	for range count {
		b, err := lane.Alloc(sizeBytes)
		if err != nil {
			return err
		}
		if err := lane.Free(b); err != nil {
			return err
		}
	}
	return nil
}
