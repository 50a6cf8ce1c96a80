package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// kernels is what a device must have besides cudadrv.Device: work that takes a given time. The simulated
// device has it.
type kernels interface {
	Launch(s cudadrv.Stream, duration time.Duration) error
}

// gpu is the service's own view of the device, for kernels and events.
type gpu struct {
	cudadrv.Device
	kernels
}

func openGPU(driver cudadrv.Driver, ordinal int) (*gpu, error) {
	device, err := driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	k, ok := device.(kernels)
	if !ok {
		_ = device.Close() // what is wrong is said below
		return nil, fmt.Errorf("driver %s has no kernels of a given duration; this service wants the simulated device (-driver sim)", driver.Name())
	}
	return &gpu{device, k}, nil
}

// pollInterval is how often a request looks whether its kernel is over. A goroutine that waits in the
// driver cannot be cancelled and holds a thread; one that polls costs a driver call of 200 ns a look.
const pollInterval = time.Millisecond

// work queues a kernel and waits until it is over or ctx ends; a kernel that was queued runs on.
func (g *gpu) work(ctx context.Context, stream cudadrv.Stream, duration time.Duration) (err error) {
	over, err := g.EventCreate()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.EventDestroy(over)) }()
	if err := errors.Join(g.Launch(stream, duration), g.EventRecord(over, stream)); err != nil {
		return err
	}
	looks := time.NewTicker(pollInterval)
	defer looks.Stop()
	for {
		passed, err := g.EventQuery(over)
		if passed || err != nil {
			return err
		}
		select {
		case <-looks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
