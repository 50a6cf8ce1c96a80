package main

import (
	"errors"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/examples/internal/kernels"
)

// gpu is the program's own view of the device, for kernels, events and copies. The allocator has
// another one, so that its statistics count its calls alone.
type gpu struct {
	cudadrv.Device
	work  *kernels.Kernels
	speed float64
}

// openGPU opens the view; the caller closes it.
func openGPU(driver cudadrv.Driver, ordinal int, speed float64) (*gpu, error) {
	device, err := driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	work, err := kernels.Open(device)
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return &gpu{Device: device, work: work, speed: speed}, nil
}

// Close gives the view back.
func (g *gpu) Close() error { return errors.Join(g.work.Close(), g.Device.Close()) }

// Now is the device's time.
func (g *gpu) Now() time.Duration { return g.work.Now() }

// compute occupies the stream for as long as the recording says with work that writes buffers, and returns the time
// that it takes here.
func (g *gpu) compute(s cudadrv.Stream, recorded time.Duration, written ...vram.Buffer) (time.Duration, error) {
	if recorded <= 0 {
		return 0, nil
	}
	took := time.Duration(float64(recorded) / g.speed)
	return took, g.work.Write(s, took, written...)
}
