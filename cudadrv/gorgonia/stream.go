//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia

import (
	"errors"

	"gorgonia.org/cu"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// StreamCreate is cuStreamCreate of a non-blocking stream.
func (d *device) StreamCreate() (cudadrv.Stream, error) {
	var s cu.Stream
	err := d.current(call.StreamCreate, func() (err error) {
		s, err = cu.MakeStream(cu.NonBlocking)
		return err
	})
	if err != nil {
		return 0, failed(call.StreamCreate, err, "")
	}
	return FromStream(s), nil
}

// StreamDestroy is cuStreamDestroy. Work of the stream still runs to its end.
func (d *device) StreamDestroy(s cudadrv.Stream) error {
	err := d.anywhere(call.StreamDestroy, func() error {
		if s <= lastStandardStream {
			return refuse(call.StreamDestroy, cudadrv.InvalidHandle, "stream %d is the context's own", uint64(s))
		}
		doomed := ToStream(s)
		return doomed.Destroy()
	})
	return failed(call.StreamDestroy, err, "")
}

// StreamQuery is cuStreamQuery.
func (d *device) StreamQuery(s cudadrv.Stream) (bool, error) {
	return passed(call.StreamQuery, d.on(s, call.StreamQuery, ToStream(s).Query))
}

// StreamSynchronize is cuStreamSynchronize. It blocks the goroutine and its thread.
func (d *device) StreamSynchronize(s cudadrv.Stream) error {
	return failed(call.StreamSynchronize, d.on(s, call.StreamSynchronize, ToStream(s).Synchronize), "")
}

// StreamWaitEvent is cuStreamWaitEvent.
func (d *device) StreamWaitEvent(s cudadrv.Stream, e cudadrv.Event) error {
	err := d.on(s, call.StreamWaitEvent, func() error {
		if e == 0 {
			return noEvent(call.StreamWaitEvent)
		}
		return ToStream(s).Wait(ToEvent(e), 0)
	})
	return failed(call.StreamWaitEvent, err, "")
}

// CtxSynchronize is cuCtxSynchronize. It blocks the goroutine and its thread.
func (d *device) CtxSynchronize() error {
	return failed(call.CtxSynchronize, d.current(call.CtxSynchronize, cu.Synchronize), "")
}

// passed reads the result of a query.
func passed(c call.Call, err error) (bool, error) {
	if errors.Is(err, cu.NotReady) {
		return false, nil
	}
	return err == nil, failed(c, err, "")
}
