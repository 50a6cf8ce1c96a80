package bench

import (
	"context"
	"errors"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// pendingBytes is what a request of the scenario async wants that no cache has: a driver job, and not much of one.
const pendingBytes = 16 << 20

// mostWaits bounds a run of operations that wait for a goroutine: some ten milliseconds. Not more: there is no point in a longer
// median. Not fewer: the first ones find processors asleep.
const mostWaits = 1000

// asyncGroups has requests as futures: those that the cache answers at once beside the plain call, and those that wait, of which
// the latencies are from the completion until the waiter runs.
func asyncGroups(o Options) []group {
	if !o.wants(ImplVRAM) {
		return nil
	}
	cached := Row{SizeBytes: smallBytes, Count: 1, Goroutines: 1}
	waiting := Row{Count: 1, Goroutines: 2}
	pending := Row{SizeBytes: pendingBytes, Count: 1, Goroutines: 2}
	return []group{
		{
			{named(cached, ImplVRAM), func() (*load, error) { return futureLoad(o) }},
			{named(cached, ImplVRAMAlloc), func() (*load, error) {
				return o.pairLoad(openVRAM(o.NewDriver, o.Config), smallBytes, 1, false)
			}},
		},
		{
			{named(pending, ImplVRAMPending), func() (*load, error) { return pendingLoad(o) }},
			{named(waiting, ImplPromise), func() (*load, error) { return wakeLoad[promised](o), nil }},
			{named(waiting, ImplChannel), func() (*load, error) { return wakeLoad[channeled](o), nil }},
		},
	}
}

func named(row Row, impl string) Row {
	row.Impl = impl
	return row
}

// futureLoad is pairs of one size, each asked for as a future that is there at once.
func futureLoad(o Options) (*load, error) {
	device, stream, err := openStream(o, o.NewDriver())
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	pairs := func(count int) error {
		for range count {
			b, err := stream.AllocAsync(ctx, vram.Request{Bytes: smallBytes}).Await(ctx)
			if err != nil {
				return err
			}
			if err := b.Free(); err != nil {
				return err
			}
		}
		return nil
	}
	return &load{
		close: device.Close,
		run: func(count int) (repetition, error) {
			return o.alone(count, func() error { return pairs(count) })
		},
		sample: func(nanos []float64) error {
			return timed(nanos, func() error { return pairs(1) })
		},
	}, nil
}

// pendingLoad asks for memory that the driver must map first. What was mapped goes back outside the time.
func pendingLoad(o Options) (*load, error) {
	driver := &stampedDriver{Driver: o.NewDriver()}
	device, stream, err := openStream(o, driver)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	one := func() (asked, completed, woken time.Time, err error) {
		asked = time.Now()
		b, err := stream.AllocAsync(ctx, vram.Request{Bytes: pendingBytes}).Await(ctx)
		woken = time.Now()
		if err == nil {
			completed = driver.mapped()
			err = b.Free()
		}
		if err == nil {
			_, err = device.Trim(ctx, 0)
		}
		return asked, completed, woken, err
	}
	return &load{
		close: device.Close,
		run: func(count int) (r repetition, err error) {
			count = min(count, mostWaits)
			before := mallocCount()
			for range count {
				asked, _, woken, err := one()
				if err != nil {
					return r, err
				}
				r.elapsed += woken.Sub(asked)
			}
			r.pairs, r.mallocs = count, mallocCount()-before
			return r, nil
		},
		sample: func(nanos []float64) error {
			for i := range nanos {
				_, completed, woken, err := one()
				if err != nil {
					return err
				}
				nanos[i] = float64(woken.Sub(completed))
			}
			return nil
		},
	}, nil
}

// openStream opens a device and a stream on it.
func openStream(o Options, driver cudadrv.Driver) (*vram.Device, *vram.Stream, error) {
	cfg := o.Config
	cfg.Driver = driver
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
