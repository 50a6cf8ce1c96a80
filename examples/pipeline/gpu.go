package main

import (
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/examples/internal/kernels"
)

// gpu is the program's own view of the device, for kernels, events and copies.
type gpu struct {
	*kernels.View
	speed float64
}

// compute occupies the stream for as long as the recording says with work that writes buffers, and returns the time
// that it takes here.
func (g *gpu) compute(s cudadrv.Stream, recorded time.Duration, written ...vram.Buffer) (time.Duration, error) {
	if recorded <= 0 {
		return 0, nil
	}
	took := time.Duration(float64(recorded) / g.speed)
	return took, g.Write(s, took, written...)
}
