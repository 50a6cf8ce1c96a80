package bench

import (
	"context"
	"errors"
	"time"

	"github.com/go-vram/vram"
)

// The first buffers of a device in the scenario warmup.
const (
	warmupCount = 100
	warmupBytes = 16 << 20
)

// warmupGroups compares a cold device with one that knows the demands. An operation is an allocation here: the free is no part
// of a cold start.
func warmupGroups(o Options) []group {
	if !o.wants(ImplVRAM) {
		return nil
	}
	contend := func(impl string, warm bool) contender {
		driverNanos := 0.0
		return contender{
			row:     Row{Impl: impl, SizeBytes: warmupBytes, Count: warmupCount, Goroutines: 1, DriverNsPerOp: &driverNanos},
			prepare: func() (*load, error) { return warmupLoad(o, warm), nil },
		}
	}
	return []group{{contend(ImplVRAMCold, false), contend(ImplVRAM, true)}}
}

// warmupLoad opens a device for each run; a run has warmupCount allocations for any count.
func warmupLoad(o Options, warm bool) *load {
	var sums counters
	return &load{
		run: func(int) (repetition, error) {
			r, driverTime, err := firstAllocations(o, warm, nil)
			sums.driverTime += driverTime
			return r, err
		},
		sample: func(nanos []float64) error {
			for len(nanos) > 0 {
				count := min(warmupCount, len(nanos))
				if _, _, err := firstAllocations(o, warm, nanos[:count]); err != nil {
					return err
				}
				nanos = nanos[count:]
			}
			return nil
		},
		counters: func() counters { return sums },
		close:    func() error { return nil },
	}
}

// firstAllocations opens a device, warms it up or not, and allocates; it frees and closes outside the
// time. Where nanos is not nil, each allocation is timed into it, as many as there is room.
func firstAllocations(o Options, warm bool, nanos []float64) (r repetition, driverTime time.Duration, err error) {
	device, stream, err := openStream(o)
	if err != nil {
		return r, 0, err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	if warm {
		if err := device.Warm(context.Background(), vram.Demand{Bytes: warmupBytes, Count: warmupCount}); err != nil {
			return r, 0, err
		}
	}
	live := make([]vram.Buffer, 0, warmupCount)
	defer func() {
		for _, b := range live {
			err = errors.Join(err, b.Free())
		}
	}()
	count := warmupCount
	if nanos != nil {
		count = len(nanos)
	}
	before := device.Stats().DriverTime
	r, err = o.alone(count, func() error {
		for i := range count {
			var start time.Time
			if nanos != nil {
				start = time.Now()
			}
			b, err := stream.Alloc(warmupBytes)
			if nanos != nil {
				nanos[i] = float64(time.Since(start))
			}
			if err != nil {
				return err
			}
			live = append(live, b)
		}
		return nil
	})
	return r, device.Stats().DriverTime - before, err
}
