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
