//go:build linux && (amd64 || arm64)

package dynamic

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// StreamWriteValue32 is cuStreamWriteValue32.
func (d *device) StreamWriteValue32(s cudadrv.Stream, p cudadrv.Ptr, value uint32) error {
	return d.onValue(call.StreamWriteValue32, cuStreamWriteValue32, cudadrv.MemoryOperations, s, p, uint64(value), 0)
}

// StreamWriteValue64 is cuStreamWriteValue64.
func (d *device) StreamWriteValue64(s cudadrv.Stream, p cudadrv.Ptr, value uint64) error {
	return d.onValue(call.StreamWriteValue64, cuStreamWriteValue64, cudadrv.MemoryOperations64, s, p, value, 0)
}

// StreamWaitValue32 is cuStreamWaitValue32.
func (d *device) StreamWaitValue32(s cudadrv.Stream, p cudadrv.Ptr, value uint32, until cudadrv.WaitCondition) error {
	return d.onValue(call.StreamWaitValue32, cuStreamWaitValue32, cudadrv.MemoryOperations, s, p, uint64(value), until)
}

// StreamWaitValue64 is cuStreamWaitValue64.
func (d *device) StreamWaitValue64(s cudadrv.Stream, p cudadrv.Ptr, value uint64, until cudadrv.WaitCondition) error {
	return d.onValue(call.StreamWaitValue64, cuStreamWaitValue64, cudadrv.MemoryOperations64, s, p, value, until)
}

// onValue makes one of the four calls: their argument lists are the same. The context is made current, as
// the address may be one of MemAlloc.
func (d *device) onValue(c call.Call, fn symbol, feature cudadrv.Capability, s cudadrv.Stream, p cudadrv.Ptr,
	value uint64, flags cudadrv.WaitCondition,
) error {
	f, err := d.enterFeature(c, feature)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args = [mostArgs]uintptr{uintptr(s), uintptr(p), uintptr(value), uintptr(flags)}
	if r := d.callCurrent(fn, f, 4); r != cudadrv.Success {
		return d.failed(f, c, r, "word at %#x", uint64(p))
	}
	return nil
}
