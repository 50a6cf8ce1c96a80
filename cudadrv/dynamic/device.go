//go:build linux && (amd64 || arm64)

package dynamic

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var (
	_ cudadrv.Device          = (*device)(nil)
	_ cudadrv.HostMemory      = (*device)(nil)
	_ cudadrv.HostFunctions   = (*device)(nil)
	_ cudadrv.ShareableMemory = (*device)(nil)
	_ cudadrv.CaptureQueries  = (*device)(nil)
	_ cudadrv.BlockingStreams = (*device)(nil)
	_ cudadrv.Kernels         = (*device)(nil)
	_ cudadrv.Graphs          = (*device)(nil)
	_ cudadrv.TimedEvents     = (*device)(nil)
	_ cudadrv.WideWork        = (*device)(nil)
	_ cudadrv.TensorMaps      = (*device)(nil)
	_ cudadrv.Peers           = (*device)(nil)
	_ cudadrv.SharedEvents    = (*device)(nil)
)

// device is an opened device. The fields above gate are written by open alone.
type device struct {
	lib     *library
	info    cudadrv.Info
	context uintptr // CUcontext
	adopted bool    // the context is the caller's
	number  int32   // CUdevice

	plain     allocationProp // of MemCreate
	shareable allocationProp // of MemCreateShareable
	access    accessDesc     // of MemSetAccess

	gate gate

	closing  atomic.Bool
	closed   chan struct{}
	closeErr error // written before closed is closed
}

// Info returns the properties read by Open.
func (d *device) Info() cudadrv.Info { return d.info }

// Close refuses further calls, waits for calls in progress and releases the primary context; it does not change a context of
// the caller. Idempotent: every call returns the first one's result, after it has finished.
func (d *device) Close() error {
	if d.closing.Swap(true) {
		<-d.closed
		return d.closeErr
	}
	defer close(d.closed)
	d.gate.close()
	if !d.adopted {
		d.closeErr = d.lib.release(d.number)
	}
	return d.closeErr
}

// enter begins a call: it takes the frame.
func (d *device) enter(c call.Call) (*frame, error) {
	if f := d.gate.enter(); f != nil {
		return f, nil
	}
	return nil, refuse(c, cudadrv.InvalidContext, "the device is closed")
}

// enterFeature enters a call that not every driver and device has: it needs one feature, or several. The error is about the
// first that is missing.
func (d *device) enterFeature(c call.Call, needed cudadrv.Capability) (*frame, error) {
	f, err := d.enter(c)
	if lacking := needed &^ d.info.Capabilities; err == nil && lacking != 0 {
		d.gate.leave(f)
		return nil, d.unsupported(c, lacking&-lacking)
	}
	return f, err
}

// enterHandle enters a call of a feature on a handle, which must not be 0.
func (d *device) enterHandle(c call.Call, feature cudadrv.Capability, handle uint64) (*frame, error) {
	f, err := d.enterFeature(c, feature)
	if err == nil && handle == 0 {
		d.gate.leave(f)
		return nil, refuse(c, cudadrv.InvalidHandle, "no handle")
	}
	return f, err
}

// unsupported returns the reason for a missing feature.
func (d *device) unsupported(c call.Call, feature cudadrv.Capability) error {
	if missing := d.lib.missing(feature); len(missing) > 0 {
		return refuse(c, cudadrv.NotSupported, "no %s: %s lacks %s", featureName(feature), d.lib.path, strings.Join(missing, ", "))
	}
	return refuse(c, cudadrv.NotSupported, "%s has no %s", d.info.Name, featureName(feature))
}

// refuse returns the error of a call that is not passed to the driver.
func refuse(c call.Call, r cudadrv.Result, format string, args ...any) error {
	return &cudadrv.CallError{Func: c.String(), Result: r, Detail: fmt.Sprintf(format, args...), Place: place()}
}

// failed returns the error of a call that the driver refused.
func (d *device) failed(f *frame, c call.Call, r cudadrv.Result, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	if f.failing {
		detail = strings.TrimPrefix(detail+": the context could not be made current", ": ")
	}
	return d.lib.describe(f, c.String(), r, detail)
}

// done makes the error, if any, of a call without a result to read.
func (d *device) done(f *frame, c call.Call, r cudadrv.Result) error {
	if r == cudadrv.Success {
		return nil
	}
	return d.failed(f, c, r, "")
}
