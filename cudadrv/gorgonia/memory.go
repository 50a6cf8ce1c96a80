//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia

import (
	"gorgonia.org/cu"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// MemGetInfo is cuMemGetInfo.
func (d *device) MemGetInfo() (freeBytes, totalBytes int64, err error) {
	err = d.current(call.MemGetInfo, func() (err error) {
		freeBytes, totalBytes, err = cu.MemInfo()
		return err
	})
	if err != nil {
		return 0, 0, failed(call.MemGetInfo, err, "")
	}
	return freeBytes, totalBytes, nil
}

// MemAlloc is cuMemAlloc.
func (d *device) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	var p cu.DevicePtr
	err := d.current(call.MemAlloc, func() (err error) {
		if bytes <= 0 {
			return refuse(call.MemAlloc, cudadrv.InvalidValue, "%d bytes", bytes)
		}
		p, err = cu.MemAlloc(bytes)
		return err
	})
	if err != nil {
		return 0, failed(call.MemAlloc, err, "%d bytes", bytes)
	}
	return FromPtr(p), nil
}

// MemFree is cuMemFree. It waits for all queued work of the device.
func (d *device) MemFree(p cudadrv.Ptr) error {
	err := d.current(call.MemFree, func() error {
		if p == 0 {
			return nil
		}
		return cu.MemFree(ToPtr(p))
	})
	return failed(call.MemFree, err, "address %#x", uint64(p))
}

// MemsetD8Async is cuMemsetD8Async. It is called with the context current, as are copies: on a thread without one, an
// H200's driver has both taken and refused memory of MemAlloc.
func (d *device) MemsetD8Async(p cudadrv.Ptr, value byte, bytes int64, s cudadrv.Stream) error {
	err := d.current(call.MemsetD8Async, func() error {
		if bytes <= 0 {
			return noWork(call.MemsetD8Async, bytes)
		}
		return cu.MemsetD8Async(ToPtr(p), value, bytes, ToStream(s))
	})
	return failed(call.MemsetD8Async, err, "%d bytes at %#x", bytes, uint64(p))
}

// MemcpyDtoDAsync is cuMemcpyDtoDAsync.
func (d *device) MemcpyDtoDAsync(dst, src cudadrv.Ptr, bytes int64, s cudadrv.Stream) error {
	err := d.current(call.MemcpyDtoDAsync, func() error {
		if bytes <= 0 {
			return noWork(call.MemcpyDtoDAsync, bytes)
		}
		return cu.MemcpyDtoDAsync(ToPtr(dst), ToPtr(src), bytes, ToStream(s))
	})
	return failed(call.MemcpyDtoDAsync, err, "%d bytes from %#x to %#x", bytes, uint64(src), uint64(dst))
}

// noWork is the answer to work on no bytes, or on fewer.
func noWork(c call.Call, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	return refuse(c, cudadrv.InvalidValue, "%d bytes", bytes)
}

// StreamWriteValue32 is cuStreamWriteValue32. The context is made current, as the address may be one of MemAlloc.
func (d *device) StreamWriteValue32(s cudadrv.Stream, p cudadrv.Ptr, value uint32) error {
	if !d.info.Capabilities.Has(cudadrv.MemoryOperations) {
		return d.inner.StreamWriteValue32(s, p, value)
	}
	err := d.current(call.StreamWriteValue32, func() error { return ToStream(s).WriteValue32(ToPtr(p), value, 0) })
	return failed(call.StreamWriteValue32, err, "word at %#x", uint64(p))
}

// StreamWaitValue32 is cuStreamWaitValue32.
func (d *device) StreamWaitValue32(s cudadrv.Stream, p cudadrv.Ptr, value uint32, until cudadrv.WaitCondition) error {
	if !d.info.Capabilities.Has(cudadrv.MemoryOperations) {
		return d.inner.StreamWaitValue32(s, p, value, until)
	}
	err := d.current(call.StreamWaitValue32, func() error { return ToStream(s).WaitOnValue32(ToPtr(p), value, uint(until)) })
	return failed(call.StreamWaitValue32, err, "word at %#x", uint64(p))
}
