package bench

import (
	"errors"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// heap is an implementation set up for a scenario: one device or one map.
type heap struct {
	workers  []worker
	counters func() counters
	close    func() error
}

// opener sets up an implementation with so many workers, which use one stream each or share one.
type opener func(workers int, shared bool) (*heap, error)

// openVRAM opens a device of its own.
func openVRAM(newDriver func() cudadrv.Driver, cfg vram.Config) opener {
	return func(workers int, shared bool) (*heap, error) {
		cfg.Driver = newDriver()
		device, err := vram.Open(cfg)
		if err != nil {
			return nil, err
		}
		h := &heap{close: device.Close, counters: func() counters { return countersOf(device) }}
		var stream *vram.Stream
		for i := range workers {
			if i == 0 || !shared {
				if stream, err = device.NewStream(); err != nil {
					return nil, errors.Join(err, device.Close())
				}
			}
			h.workers = append(h.workers, newVRAMHands(stream))
		}
		return h, nil
	}
}

// openMutex makes one map, which all workers share either way.
func openMutex(workers int, _ bool) (*heap, error) {
	shared := newMutexHeap()
	h := &heap{close: func() error { return nil }}
	for range workers {
		h.workers = append(h.workers, newMutexHands(shared))
	}
	return h, nil
}

func countersOf(device *vram.Device) counters {
	stats := device.Stats()
	c := counters{driverTime: stats.DriverTime, driverCalls: stats.DriverCalls}
	for _, s := range stats.Streams {
		c.nodeVisits += s.NodeVisits
	}
	return c
}

// openStream opens a device and a stream on it.
func openStream(o Options) (*vram.Device, *vram.Stream, error) {
	cfg := o.Config
	cfg.Driver = o.NewDriver()
	device, err := vram.Open(cfg)
	if err != nil {
		return nil, nil, err
	}
	stream, err := device.NewStream()
	if err != nil {
		return nil, nil, errors.Join(err, device.Close())
	}
	return device, stream, nil
}
