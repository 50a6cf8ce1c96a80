package sim

import (
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.Peers = (*Device)(nil)

// Context returns a number of the GPU's own, which no GPU of another Driver has.
func (d *Device) Context() cudadrv.Context {
	return cudadrv.Context(d.gpu.driver.number + firstContext + uint64(d.gpu.info.Ordinal)) //nolint:gosec // not negative
}

// peer returns the GPU of the Driver with that ordinal.
func (g *gpu) peer(c call.Call, ordinal int) (*gpu, error) {
	if ordinal < 0 || ordinal >= len(g.driver.gpus) {
		return nil, fail(c, cudadrv.InvalidDevice, "ordinal %d of %d", ordinal, len(g.driver.gpus))
	}
	return g.driver.gpus[ordinal], nil
}

// DeviceCanAccessPeer reports true for all other GPUs of the Driver.
func (d *Device) DeviceCanAccessPeer(ordinal int) (bool, error) {
	const c = call.DeviceCanAccessPeer
	return value(d, c, cudadrv.PeerAccess, func(g *gpu) (bool, error) {
		other, err := g.peer(c, ordinal)
		if err != nil {
			return false, err
		}
		return other != g, nil
	})
}

// MemSetPeerAccess checks its arguments as MemSetAccess does. It records nothing: the simulator does not know the accesses of
// kernels, and its memsets and copies stay on the GPU of their stream.
func (d *Device) MemSetPeerAccess(p cudadrv.Ptr, bytes int64, ordinals ...int) error {
	const c = call.MemSetAccess
	return d.do(c, cudadrv.VirtualMemory, func(g *gpu) error {
		if !g.info.Capabilities.Has(cudadrv.PeerAccess) {
			return fail(c, cudadrv.NotSupported, "the device does not have the capability")
		}
		if len(ordinals) == 0 {
			return fail(c, cudadrv.InvalidValue, "no devices")
		}
		for _, ordinal := range ordinals {
			if _, err := g.peer(c, ordinal); err != nil {
				return err
			}
		}
		return g.setAccess(p, bytes, slices.Contains(ordinals, g.info.Ordinal))
	})
}

// contextNamed returns the opened GPU of a context.
func (g *gpu) contextNamed(c call.Call, x cudadrv.Context) (*gpu, error) {
	for _, other := range g.driver.gpus {
		if x == (&Device{gpu: other}).Context() && other.opens > 0 {
			return other, nil
		}
	}
	return nil, fail(c, cudadrv.InvalidContext, "no context %#x", uint64(x))
}

// MemcpyPeerAsync queues a copy between two GPUs of the Driver on a stream of one of them.
func (d *Device) MemcpyPeerAsync(dst cudadrv.Ptr, dstContext cudadrv.Context, src cudadrv.Ptr, srcContext cudadrv.Context, bytes int64, s cudadrv.Stream) error {
	const c = call.MemcpyPeerAsync
	return d.do(c, cudadrv.PeerAccess, func(g *gpu) error {
		to, err := g.contextNamed(c, dstContext)
		if err != nil {
			return err
		}
		from, err := g.contextNamed(c, srcContext)
		if err != nil {
			return err
		}
		of, st := streamOf(s, g, to, from)
		switch {
		case st == nil:
			return fail(c, cudadrv.InvalidHandle, "no stream %#x of the two devices", uint64(s))
		case bytes < 0:
			return fail(c, cudadrv.InvalidValue, "%d bytes", bytes)
		case bytes == 0:
			return nil
		case !to.reaches(dst, bytes):
			return fail(c, cudadrv.IllegalAddress, "%d bytes at %#x of device %d are not all mapped and accessible", bytes, dst, to.info.Ordinal)
		case !from.reaches(src, bytes):
			return fail(c, cudadrv.IllegalAddress, "%d bytes at %#x of device %d are not all mapped and accessible", bytes, src, from.info.Ordinal)
		}
		duration := peerTime(bytes)
		if to == from {
			duration = memcpyTime(bytes)
		}
		return of.submit(st, duration, work{call: c, dst: dst, src: src, bytes: bytes, dstGPU: to, srcGPU: from})
	})
}

// streamOf returns the stream s of either GPU, and its GPU. The legacy default stream belongs to the called GPU.
func streamOf(s cudadrv.Stream, called, to, from *gpu) (*gpu, *stream) {
	for _, g := range [...]*gpu{to, from} {
		if st, ok := g.streams[named(s)]; ok && (named(s) != 0 || g == called) {
			return g, st
		}
	}
	return nil, nil
}
