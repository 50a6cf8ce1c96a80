package bench

import (
	"context"
	"errors"
	"time"

	"github.com/go-vram/vram"
)

// What a device keeps in the scenario warmup where it is to foresee the next step, and how long it may take to learn that.
const (
	predictedKeepBytes = 64 << 20
	learningTime       = 2 * time.Minute // not the time it takes, a second or two: a busy machine has others
)

// errNotLearned says that a device did not foresee a loop.
var errNotLearned = errors.New("the device does not foresee the loop")

// loop is steps that allocate as the other contenders do, and give everything back.
type loop struct {
	device *vram.Device
	stream *vram.Stream
	live   []vram.Buffer
}

// predictedLoad opens a device for all runs, and plays the loop until its steps are foreseen.
func predictedLoad(o Options) (*load, error) {
	o.Config.Predict, o.Config.PoolCacheBytes = true, predictedKeepBytes
	device, stream, err := openStream(o, o.NewDriver())
	if err != nil {
		return nil, err
	}
	l := &loop{device: device, stream: stream, live: make([]vram.Buffer, 0, warmupCount)}
	for begin := time.Now(); device.Stats().Predicted < 2; {
		if err := errors.Join(l.take(nil), l.give()); err != nil {
			return nil, errors.Join(err, device.Close())
		}
		if time.Since(begin) > learningTime {
			return nil, errors.Join(errNotLearned, device.Close())
		}
	}
	return &load{
		run: func(int) (repetition, error) {
			r, err := o.alone(warmupCount, func() error { return l.take(nil) })
			return r, errors.Join(err, l.give())
		},
		sample: func(nanos []float64) error {
			for len(nanos) > 0 {
				count := min(warmupCount, len(nanos))
				if err := errors.Join(l.take(nanos[:count]), l.give()); err != nil {
					return err
				}
				nanos = nanos[count:]
			}
			return nil
		},
		counters: func() counters { return countersOf(device) },
		close:    device.Close,
	}, nil
}

// take allocates what a step needs. Where nanos is not nil, each allocation is timed into it, as many as there is room.
func (l *loop) take(nanos []float64) error {
	count := warmupCount
	if nanos != nil {
		count = len(nanos)
	}
	for i := range count {
		var start time.Time
		if nanos != nil {
			start = time.Now()
		}
		b, err := l.stream.Alloc(warmupBytes)
		if nanos != nil {
			nanos[i] = float64(time.Since(start))
		}
		if err != nil {
			return err
		}
		l.live = append(l.live, b)
	}
	return nil
}

// give frees what a step had and returns it to the pool.
func (l *loop) give() error {
	var errs []error
	for _, b := range l.live {
		errs = append(errs, b.Free())
	}
	l.live = l.live[:0]
	return errors.Join(append(errs, l.stream.Trim(context.Background()))...)
}
