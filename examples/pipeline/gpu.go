package main

import (
	"errors"
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

// copy queues a copy of a parcel to memory of this device, on one of its streams, after the work that fills the parcel.
func (g *gpu) copy(dst cudadrv.Ptr, p parcel, bytes int64, s cudadrv.Stream) error {
	if err := g.StreamWaitEvent(s, p.filled); err != nil {
		return err
	}
	if p.on == g {
		return g.MemcpyDtoDAsync(dst, p.buffer.Ptr(), bytes, s)
	}
	to, ok := g.Device.(cudadrv.Peers)
	from, also := p.on.Device.(cudadrv.Peers)
	if !ok || !also {
		return errNoPeers
	}
	return to.MemcpyPeerAsync(dst, to.Context(), p.buffer.Ptr(), from.Context(), bytes, s)
}

// errNoPeers reports a driver that copies on one device only.
var errNoPeers = errors.New("the driver cannot copy between devices")

// compute occupies the stream for the recorded time with work that writes buffers, and returns the time on this device.
func (g *gpu) compute(s cudadrv.Stream, recorded time.Duration, written ...vram.Buffer) (time.Duration, error) {
	if recorded <= 0 {
		return 0, nil
	}
	took := time.Duration(float64(recorded) / g.speed)
	return took, g.Write(s, took, written...)
}
