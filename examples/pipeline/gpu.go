package main

import (
	"fmt"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// kernels is what a device must have besides cudadrv.Device: something that takes time. The simulated
// device has it.
type kernels interface {
	// Launch queues work on the stream that takes so long.
	Launch(s cudadrv.Stream, duration time.Duration) error
	// Now is the device's time.
	Now() time.Duration
}

// gpu is the program's own view of the device, for kernels, events and copies. The allocator has
// another one, so that its statistics count its calls alone.
type gpu struct {
	cudadrv.Device
	kernels
	speed float64
}

// openGPU opens the view; the caller closes it.
func openGPU(driver cudadrv.Driver, ordinal int, speed float64) (*gpu, error) {
	device, err := driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	k, ok := device.(kernels)
	if !ok {
		_ = device.Close() // what is wrong is said below
		return nil, fmt.Errorf("driver %s has no kernels of a given duration; this program wants the simulated device (-driver sim)", driver.Name())
	}
	return &gpu{Device: device, kernels: k, speed: speed}, nil
}

// compute occupies the stream for as long as the recording says, and returns the time that it takes here.
func (g *gpu) compute(s cudadrv.Stream, recorded time.Duration) (time.Duration, error) {
	if recorded <= 0 {
		return 0, nil
	}
	took := time.Duration(float64(recorded) / g.speed)
	return took, g.Launch(s, took)
}
