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
type gpu struct{ *kernels.View }

// A request polls its kernel after pollInterval, and then after each further pollShare of its waiting time: hundreds of long
// waits poll seldom, and none keeps its memory more than an eighth longer than necessary. A goroutine that waits in the driver
// instead cannot be cancelled and holds a thread; a poll is a driver call of 200 ns.
const (
	pollInterval = time.Millisecond
	pollShare    = 8
)

// work queues a kernel that writes buffers and waits until it is over or ctx ends; a queued kernel keeps running.
func (g *gpu) work(ctx context.Context, stream cudadrv.Stream, duration time.Duration, written []vram.Buffer) (err error) {
	over, err := g.EventCreate()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.EventDestroy(over)) }()
	if err := errors.Join(g.Write(stream, duration, written...), g.EventRecord(over, stream)); err != nil {
		return err
	}
	start := time.Now()
	look := time.NewTimer(pollInterval)
	defer look.Stop()
	for {
		passed, err := g.EventQuery(over)
		if passed || err != nil {
			return err
		}
		select {
		case <-look.C:
			look.Reset(max(pollInterval, time.Since(start)/pollShare))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
