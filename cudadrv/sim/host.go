package sim

import (
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.HostMemory = (*Device)(nil)

// enterHost enters a call of host memory.
func (d *Device) enterHost(c call.Call) error {
	if err := d.enter(c); err != nil {
		return err
	}
	if d.gpu.backing == nil || !d.gpu.info.Capabilities.Has(cudadrv.PinnedHost) {
		return fail(c, cudadrv.NotSupported, "the simulated device has no bytes (sim.Config.Bytes)")
	}
	return nil
}

// MemHostAlloc makes page-locked memory, which this GPU alone can address. It is zeroed.
func (d *Device) MemHostAlloc(bytes int64) ([]byte, error) {
	const c = call.MemHostAlloc
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enterHost(c); err != nil {
		return nil, err
	}
	if bytes <= 0 {
		return nil, fail(c, cudadrv.InvalidValue, "%d bytes", bytes)
	}
	if bytes > spaceEnd {
		return nil, fail(c, cudadrv.OutOfMemory, "%d bytes are more than the address space", bytes)
	}
	base, err := g.backing.allocate(bytes)
	if err != nil {
		return nil, hostFailed(c, err)
	}
	host := unsafe.Slice((*byte)(base), bytes)
	if err := g.pin(c, host, true); err != nil {
		_ = g.backing.release(base, bytes) // the other error is the cause
		return nil, err
	}
	g.chargeBytes(c, bytes)
	return host, nil
}

// MemFreeHost waits for all work queued on the device and gives memory of MemHostAlloc back.
func (d *Device) MemFreeHost(b []byte) error { return d.endPin(call.MemFreeHost, b, true) }

// MemHostRegister page-locks memory of the caller's, of which no byte is page-locked yet.
func (d *Device) MemHostRegister(b []byte) error {
	const c = call.MemHostRegister
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enterHost(c); err != nil {
		return err
	}
	if len(b) == 0 {
		return fail(c, cudadrv.InvalidValue, "no host memory")
	}
	if m := g.pinned.overlapping(b); m != nil {
		r := cudadrv.HostMemoryAlreadyRegistered
		if m.owned {
			r = cudadrv.InvalidValue
		}
		return fail(c, r, "a part is page-locked already")
	}
	return g.pin(c, b, false)
}

// MemHostUnregister waits for all work queued on the device and undoes MemHostRegister.
func (d *Device) MemHostUnregister(b []byte) error { return d.endPin(call.MemHostUnregister, b, false) }

// endPin ends page-locked memory that begins with b's first byte.
func (d *Device) endPin(c call.Call, b []byte, owned bool) error {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enterHost(c); err != nil {
		return err
	}
	if cap(b) == 0 {
		return fail(c, cudadrv.InvalidValue, "no host memory")
	}
	begins := func() *pin {
		if m, ok := g.pinned.byHost.at(hostPtr(b)); ok && m.owned == owned {
			return m
		}
		return nil
	}
	m := begins()
	if m == nil {
		if owned {
			return fail(c, cudadrv.InvalidValue, "no memory of MemHostAlloc begins at %#x", hostPtr(b))
		}
		r := cudadrv.HostMemoryNotRegistered
		if g.pinned.aroundHost(b[:1]) != nil { // it is page-locked otherwise, or does not begin there
			r = cudadrv.InvalidValue
		}
		return fail(c, r, "no registered memory begins at %#x", hostPtr(b))
	}
	if err := g.wait(c, g.drained); err != nil {
		return err
	}
	if begins() != m { // another caller ended it while the running clock ran
		return fail(c, cudadrv.InvalidValue, "the memory at %#x was freed during the wait", hostPtr(b))
	}
	g.chargeBytes(c, int64(len(m.host)))
	return g.unpin(c, m)
}

// MemHostGetDevicePointer returns the address by which work reaches b's first byte, which is page-locked.
func (d *Device) MemHostGetDevicePointer(b []byte) (cudadrv.Ptr, error) {
	const c = call.MemHostGetDevicePointer
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enterHost(c); err != nil {
		return 0, err
	}
	if len(b) > 0 {
		if m := g.pinned.aroundHost(b[:1]); m != nil {
			return m.start + (hostPtr(b) - hostPtr(m.host)), nil
		}
	}
	return 0, fail(c, cudadrv.InvalidValue, "the memory is not page-locked")
}

// MemcpyHtoDAsync queues a copy to the device. Where src is not page-locked the call waits for the copy.
func (d *Device) MemcpyHtoDAsync(dst cudadrv.Ptr, src []byte, s cudadrv.Stream) error {
	return d.transfer(s, hostTime, work{call: call.MemcpyHtoDAsync, dst: dst, host: src, bytes: int64(len(src))}, dst)
}

// MemcpyDtoHAsync queues a copy to the host. Where dst is not page-locked the call waits for the copy.
func (d *Device) MemcpyDtoHAsync(dst []byte, src cudadrv.Ptr, s cudadrv.Stream) error {
	return d.transfer(s, hostTime, work{call: call.MemcpyDtoHAsync, src: src, host: dst, bytes: int64(len(dst))}, src)
}
