//go:build linux && (amd64 || arm64)

package dynamic

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// StreamCreate calls cuStreamCreate for a non-blocking stream.
func (d *device) StreamCreate() (cudadrv.Stream, error) { return d.createStream(nonBlocking) }

// StreamCreateBlocking calls cuStreamCreate for a stream that synchronises with the legacy default stream.
func (d *device) StreamCreateBlocking() (cudadrv.Stream, error) { return d.createStream(0) }

func (d *device) createStream(flags uintptr) (cudadrv.Stream, error) {
	f, err := d.enter(call.StreamCreate)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = f.pointer(0), flags
	if r := d.outside(inContext, call.StreamCreate, f, 2); r != cudadrv.Success {
		return 0, d.failed(f, call.StreamCreate, r, "")
	}
	return cudadrv.Stream(f.out[0]), nil
}

// StreamDestroy calls cuStreamDestroy. Work of the stream still runs to its end.
func (d *device) StreamDestroy(s cudadrv.Stream) error {
	f, err := d.enter(call.StreamDestroy)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if s <= lastStandardStream {
		return refuse(call.StreamDestroy, cudadrv.InvalidHandle, "stream %d is the context's own", uint64(s))
	}
	f.args[0] = uintptr(s)
	r := d.outside(anywhere, call.StreamDestroy, f, 1)
	if r == cudadrv.Success {
		d.lib.captures.forget(s)
	}
	return d.done(f, call.StreamDestroy, r)
}

// StreamQuery calls cuStreamQuery.
func (d *device) StreamQuery(s cudadrv.Stream) (bool, error) {
	f, err := d.enter(call.StreamQuery)
	if err != nil {
		return false, err
	}
	defer d.gate.leave(f)
	f.args[0] = uintptr(s)
	return d.passed(f, call.StreamQuery, d.outside(on(s), call.StreamQuery, f, 1))
}

// StreamSynchronize calls cuStreamSynchronize. It blocks the goroutine and its thread.
func (d *device) StreamSynchronize(s cudadrv.Stream) error {
	f, err := d.enter(call.StreamSynchronize)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0] = uintptr(s)
	return d.done(f, call.StreamSynchronize, d.outside(on(s), call.StreamSynchronize, f, 1))
}

// StreamWaitEvent calls cuStreamWaitEvent.
func (d *device) StreamWaitEvent(s cudadrv.Stream, e cudadrv.Event) error {
	f, err := d.enterEvent(call.StreamWaitEvent, e)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1], f.args[2] = uintptr(s), uintptr(e), 0
	return d.done(f, call.StreamWaitEvent, d.callOn(s, call.StreamWaitEvent, f, 3))
}

// CtxSynchronize calls cuCtxSynchronize. It blocks the goroutine and its thread.
func (d *device) CtxSynchronize() error {
	f, err := d.enter(call.CtxSynchronize)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	return d.done(f, call.CtxSynchronize, d.outside(inContext, call.CtxSynchronize, f, 0))
}

// StreamIsCapturing calls cuStreamIsCapturing.
func (d *device) StreamIsCapturing(s cudadrv.Stream) (cudadrv.CaptureStatus, error) {
	f, err := d.enterFeature(call.StreamIsCapturing, cudadrv.CaptureInformation)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = uintptr(s), f.pointer(0)
	if r := d.callOn(s, call.StreamIsCapturing, f, 2); r != cudadrv.Success {
		return 0, d.failed(f, call.StreamIsCapturing, r, "")
	}
	return cudadrv.CaptureStatus(f.int32()), nil
}

// passed reads the result of a query.
func (d *device) passed(f *frame, c call.Call, r cudadrv.Result) (bool, error) {
	if r == cudadrv.NotReady {
		return false, nil
	}
	return r == cudadrv.Success, d.done(f, c, r)
}
