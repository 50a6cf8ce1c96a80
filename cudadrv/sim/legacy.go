package sim

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.BlockingStreams = (*Device)(nil)

// legacyHandle is the other name of the legacy default stream (CU_STREAM_LEGACY).
const legacyHandle cudadrv.Stream = 1

// named returns the canonical name of a stream: the legacy default stream has two.
func named(s cudadrv.Stream) cudadrv.Stream {
	if s == legacyHandle {
		return 0
	}
	return s
}

// StreamCreateBlocking makes a stream that synchronises with the legacy default stream.
func (d *Device) StreamCreateBlocking() (cudadrv.Stream, error) {
	if !d.gpu.info.Capabilities.Has(cudadrv.BlockingCreation) {
		return 0, fail(call.StreamCreate, cudadrv.NotSupported, "the device does not have the capability")
	}
	s, err := d.StreamCreate()
	if err != nil {
		return 0, err
	}
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if st := g.streams[s]; st != nil { // not destroyed by a guess of its name
		st.blocking = true
		g.blocking = append(g.blocking, st)
	}
	return s, nil
}

// synchronise orders the next work of a stream with the legacy default stream: that waits for all blocking streams, and they
// for it. A destroyed blocking stream counts while it has work.
func (g *gpu) synchronise(st *stream) {
	switch legacy := g.streams[0]; {
	case st == legacy:
		for _, b := range g.blocking {
			st.drained = max(st.drained, b.drained)
		}
	case st.blocking:
		st.drained = max(st.drained, legacy.drained)
	}
}

// forgetBlocking drops a blocking stream that was destroyed: its work stays work of the legacy default stream's past.
func (g *gpu) forgetBlocking(st *stream) {
	for i, b := range g.blocking {
		if b == st {
			legacy := g.streams[0]
			legacy.drained = max(legacy.drained, st.drained)
			g.blocking = append(g.blocking[:i], g.blocking[i+1:]...)
			return
		}
	}
}
