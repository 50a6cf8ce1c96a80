package main

import (
	"errors"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/examples/internal/kernels"
)

// gpu is the program's own view of the device, for kernels and memsets.
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

func (g *gpu) close() error { return errors.Join(g.kernels.Close(), g.Close()) }

// bytesPerSecond is the bandwidth of an H200's memory, which bounds what an optimizer does, less what is never reached.
const bytesPerSecond = 3e12

// touch queues a kernel that writes buffers and moves so many bytes.
func (g *gpu) touch(s *vram.Stream, bytes int64, written ...vram.Buffer) error {
	duration := time.Duration(float64(bytes) / bytesPerSecond * float64(time.Second))
	return g.kernels.Write(s.Handle(), duration, written...)
}
