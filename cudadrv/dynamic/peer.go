//go:build linux && (amd64 || arm64)

package dynamic

import (
	"runtime"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// Context returns the primary context that Open retained, or the caller's.
func (d *device) Context() cudadrv.Context { return cudadrv.Context(d.context) }

// DeviceCanAccessPeer calls cuDeviceCanAccessPeer. A device is no peer of its own.
func (d *device) DeviceCanAccessPeer(ordinal int) (bool, error) {
	f, err := d.enterFeature(call.DeviceCanAccessPeer, cudadrv.PeerAccess)
	if err != nil {
		return false, err
	}
	defer d.gate.leave(f)
	peer, err := d.peer(f, call.DeviceCanAccessPeer, ordinal)
	if err != nil {
		return false, err
	}
	f.args[0], f.args[1], f.args[2] = f.pointer(0), uintptr(d.number), uintptr(peer)
	if r := d.lib.call(call.DeviceCanAccessPeer, f, 3); r != cudadrv.Success {
		return false, d.failed(f, call.DeviceCanAccessPeer, r, "ordinal %d", ordinal)
	}
	return f.int32() != 0, nil
}

// peer returns the CUdevice of an ordinal.
func (d *device) peer(f *frame, c call.Call, ordinal int) (int32, error) {
	if ordinal < 0 {
		return 0, refuse(c, cudadrv.InvalidDevice, "ordinal %d", ordinal)
	}
	f.args[0], f.args[1] = f.pointer(0), uintptr(ordinal)
	if r := d.lib.call(cuDeviceGet, f, 2); r != cudadrv.Success {
		return 0, d.failed(f, c, r, "ordinal %d", ordinal)
	}
	return f.int32(), nil
}

// MemSetPeerAccess calls cuMemSetAccess: the devices may read and write.
func (d *device) MemSetPeerAccess(p cudadrv.Ptr, bytes int64, ordinals ...int) error {
	f, err := d.enterFeature(call.MemSetAccess, cudadrv.PeerAccess)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if !d.info.Capabilities.Has(cudadrv.VirtualMemory) {
		return d.unsupported(call.MemSetAccess, cudadrv.VirtualMemory)
	}
	if p == 0 || bytes <= 0 || len(ordinals) == 0 {
		return refuse(call.MemSetAccess, cudadrv.InvalidValue, "%d bytes at %#x for %d devices", bytes, uint64(p), len(ordinals))
	}
	access := make([]accessDesc, len(ordinals))
	for i, ordinal := range ordinals {
		peer, err := d.peer(f, call.MemSetAccess, ordinal)
		if err != nil {
			return err
		}
		access[i] = accessDesc{location: memLocation{deviceLocation, peer}, flags: readWriteAccess}
	}
	f.args = [mostArgs]uintptr{uintptr(p), uintptr(bytes), f.hold(unsafe.Pointer(&access[0])), uintptr(len(access))}
	if r := d.outside(anywhere, call.MemSetAccess, f, 4); r != cudadrv.Success {
		return d.failed(f, call.MemSetAccess, r, "%d bytes at %#x for ordinals %v", bytes, uint64(p), ordinals)
	}
	return nil
}

// MemcpyPeerAsync calls cuMemcpyPeerAsync.
func (d *device) MemcpyPeerAsync(dst cudadrv.Ptr, dstContext cudadrv.Context, src cudadrv.Ptr, srcContext cudadrv.Context, bytes int64, s cudadrv.Stream) error {
	f, err := d.enterFeature(call.MemcpyPeerAsync, cudadrv.PeerAccess)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if bytes <= 0 {
		return d.noWork(call.MemcpyPeerAsync, bytes)
	}
	if dstContext == 0 || srcContext == 0 {
		return refuse(call.MemcpyPeerAsync, cudadrv.InvalidContext, "no context")
	}
	f.args = [mostArgs]uintptr{
		uintptr(dst), uintptr(dstContext), uintptr(src), uintptr(srcContext), uintptr(bytes), uintptr(s),
	}
	if r := d.callCurrent(call.MemcpyPeerAsync, f, 6); r != cudadrv.Success {
		return d.failed(f, call.MemcpyPeerAsync, r, "%d bytes from %#x to %#x", bytes, uint64(src), uint64(dst))
	}
	return nil
}

// IpcGetEventHandle calls cuIpcGetEventHandle.
func (d *device) IpcGetEventHandle(e cudadrv.Event) (cudadrv.EventDescriptor, error) {
	f, err := d.enterHandle(call.IpcGetEventHandle, cudadrv.EventSharing, uint64(e))
	if err != nil {
		return cudadrv.EventDescriptor{}, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = uintptr(unsafe.Pointer(&f.block)), uintptr(e)
	if r := d.outside(inContext, call.IpcGetEventHandle, f, 2); r != cudadrv.Success {
		return cudadrv.EventDescriptor{}, d.failed(f, call.IpcGetEventHandle, r, "")
	}
	return *(*cudadrv.EventDescriptor)(unsafe.Pointer(&f.block)), nil
}

// registerArgs is how many arguments amd64 passes in registers. A structure of more than 16 bytes that is passed by value lies
// in memory: the words after the last register's argument are on the stack.
const registerArgs = 6

// IpcOpenEventHandle calls cuIpcOpenEventHandle. Its second argument is the descriptor by value: 64 bytes on the stack on
// amd64, where five registers between stay without a meaning, and a copy's address on arm64.
func (d *device) IpcOpenEventHandle(from cudadrv.EventDescriptor) (cudadrv.Event, error) {
	f, err := d.enterFeature(call.IpcOpenEventHandle, cudadrv.EventSharing)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0] = f.pointer(0)
	n := 2
	if runtime.GOARCH == "amd64" {
		*(*cudadrv.EventDescriptor)(unsafe.Pointer(&f.args[registerArgs])) = from
		n = mostArgs
	} else {
		*(*cudadrv.EventDescriptor)(unsafe.Pointer(&f.block)) = from
		f.args[1] = uintptr(unsafe.Pointer(&f.block))
	}
	if r := d.outside(inContext, call.IpcOpenEventHandle, f, n); r != cudadrv.Success {
		return 0, d.failed(f, call.IpcOpenEventHandle, r, "")
	}
	return cudadrv.Event(f.out[0]), nil
}
