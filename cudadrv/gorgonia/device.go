//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia

import (
	"runtime"
	"sync/atomic"

	"gorgonia.org/cu"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// inner is the device of cudadrv/dynamic: what is not written down for device goes there.
type inner interface {
	cudadrv.Device
	cudadrv.HostMemory
	cudadrv.HostFunctions
	cudadrv.ShareableMemory
	cudadrv.CaptureQueries
	cudadrv.BlockingStreams
}

var _ inner = (*device)(nil)

// device is an opened device. What is above gate is written by openIn alone.
type device struct {
	inner

	context cu.CUContext
	release func() error // gives the primary context back; nil: the context is the caller's
	info    cudadrv.Info

	gate gate

	closing  atomic.Bool
	closed   chan struct{}
	closeErr error // written before closed is closed
}

// Info is what the driver said at Open.
func (d *device) Info() cudadrv.Info { return d.info }

// Close refuses further calls, waits for those under way, and releases the primary context; a context of the
// caller's stays as it is. Idempotent: every call returns the first one's result, after it has finished.
func (d *device) Close() error {
	if d.closing.Swap(true) {
		<-d.closed
		return d.closeErr
	}
	defer close(d.closed)
	d.gate.close()
	d.closeErr = d.inner.Close()
	if d.closeErr == nil && d.release != nil {
		d.closeErr = d.release()
	}
	return d.closeErr
}

// current makes a call with the device's context current on the calling thread, and leaves the thread with the
// contexts that it had. The error is CUDA's or, where the device is closed, a *cudadrv.CallError.
func (d *device) current(c call.Call, f func() error) error {
	if !d.gate.enter() {
		return errClosed(c)
	}
	defer d.gate.leave()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.PushCurrentCtx(d.context); err != nil {
		return failed(c, err, "the context could not be made current")
	}
	err := f()
	// It fails only where the context has gone meanwhile, and then so did the call.
	_, _ = cu.PopCurrentCtx()
	return err
}

// anywhere makes a call that does not look at the current context.
func (d *device) anywhere(c call.Call, f func() error) error {
	if !d.gate.enter() {
		return errClosed(c)
	}
	defer d.gate.leave()
	return f()
}

// lastStandardStream is the greatest of the streams that every context has: 0, legacy (1) and per-thread (2).
const lastStandardStream = 2

// on makes a call on a stream. The standard streams belong to the current context, others to the one that they
// were made in.
func (d *device) on(s cudadrv.Stream, c call.Call, f func() error) error {
	if s <= lastStandardStream {
		return d.current(c, f)
	}
	return d.anywhere(c, f)
}
