package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/examples/internal/kernels"
)

// gpu is the service's own view of the device, for kernels and events.
type gpu struct {
	cudadrv.Device
	kernels *kernels.Kernels
}

func openGPU(driver cudadrv.Driver, ordinal int) (*gpu, error) {
	device, err := driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	k, err := kernels.Open(device)
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return &gpu{device, k}, nil
}

// Close gives the view back.
func (g *gpu) Close() error { return errors.Join(g.kernels.Close(), g.Device.Close()) }

// pollInterval is how often a request looks whether its kernel is over. A goroutine that waits in the
// driver cannot be cancelled and holds a thread; one that polls costs a driver call of 200 ns a look.
const pollInterval = time.Millisecond

// work queues a kernel that writes buffers and waits until it is over or ctx ends; a kernel that was queued runs on.
func (g *gpu) work(ctx context.Context, stream cudadrv.Stream, duration time.Duration, written []vram.Buffer) (err error) {
	over, err := g.EventCreate()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.EventDestroy(over)) }()
	if err := errors.Join(g.kernels.Write(stream, duration, written...), g.EventRecord(over, stream)); err != nil {
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
