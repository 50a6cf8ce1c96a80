package streams

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/recovered"
)

// cudaStream is the CUDA stream: every driver call on it is made here, outside every turn, and
// Close waits for all calls that have begun.
type cudaStream struct {
	id       uint32
	stream   cudadrv.Stream
	adopted  bool // by the program, which destroys it
	device   cudadrv.Device
	fences   *fence.Events
	captures cudadrv.CaptureQueries // nil: the device cannot tell
	panics   *recovered.Log
	line     *fence.Timeline // fences over its work, for buffers of other streams

	deviceClosed   *atomic.Bool // Peers.End was called
	calls          atomic.Int64 // driver calls that a turn ordered, or in progress
	announcement   announcement // of captures of the stream
	closing        atomic.Bool  // Close has begun
	held           atomic.Bool  // a graph has its memory: no fence of it passes
	crossings      crossings
	copies         hostCopies
	whole          *order        // of a hold's memory; else nil
	gate           *gate         // of a Sleeper's stream; else nil
	strand         atomic.Value  // a stranding; nil: no work waits for another process
	synced         atomic.Bool   // closed, and the device has finished its work; set in the turn
	forbiddenCalls atomic.Uint64 // counts calls that a capture forbade
	lost           atomic.Uint64 // fences of Returns that a capture may have, see Stats.LostFences
}

// stranding waits for a stream whose work may wait for another process. It is an interface so that a program without
// other processes has no code for such waits.
type stranding interface {
	await(h *cudaStream, device cudadrv.Device) error
}

// closed returns the error of a call on the stream once Close has begun: of the stream, or of its device.
func (h *cudaStream) closed() error {
	if h.deviceClosed.Load() {
		return &ClosedError{}
	}
	return &ClosedError{Stream: h.id}
}

// order announces a call that a turn leaves to be made outside; done ends it.
func (h *cudaStream) order() { h.calls.Add(1) }

func (h *cudaStream) done() { h.calls.Add(-1) }

// begin announces a call that the caller makes now; done ends it. It fails once Close has begun.
func (h *cudaStream) begin() bool {
	h.calls.Add(1)
	if h.closing.Load() {
		h.calls.Add(-1)
		return false
	}
	return true
}

// claimClose decides which Close ends the stream: first is true for that one alone. It ends a call
// that the caller has begun. So no Close returns while it queries the driver: after a Close the
// program may destroy the CUDA stream, adopt it again and capture it, and the answer would be about
// another stream. The error is a *CaptureError, and the stream is open. Neither says that another
// Close was first.
func (h *cudaStream) claimClose() (first bool, err error) {
	defer h.done()
	if err = h.enter("cuStreamSynchronize"); err != nil {
		if h.closing.Load() {
			return false, nil
		}
		return false, err
	}
	defer h.announcement.leave() // no capture begins before the stream is closed
	return h.closing.CompareAndSwap(false, true), nil
}

// awaitCalls waits for the calls that are announced: for each a goroutine makes it, or is about to.
func (h *cudaStream) awaitCalls(host actors.Host) {
	for h.calls.Load() > 0 || h.announcement.busy() || !h.line.Idle() {
		actors.Yield(host)
	}
}

// enter begins a call on the CUDA stream that may not be part of a graph; announcement.leave ends
// it. The error is a *CaptureError if the stream is being captured, and then the call must not be
// made. Every such call begins here: so no capture that announces itself begins before it has ended.
func (h *cudaStream) enter(call string) error {
	if !h.announcement.enter() {
		return h.forbidden(call)
	}
	if err := h.uncaptured(call); err != nil {
		h.announcement.leave()
		return err
	}
	return nil
}

// forbidden returns the error of a call that a capture forbids.
func (h *cudaStream) forbidden(call string) error {
	h.forbiddenCalls.Add(1)
	return &CaptureError{Stream: h.id, Call: call}
}

// uncaptured queries the driver: nil says that a call may be made on the CUDA stream, a
// *CaptureError that it is being captured. A program that begins a capture past this module does
// not announce it, and may find a call in the graph: record checks again, so that no query of a
// captured fence, and no wait for it, ends the capture or draws another stream into it.
func (h *cudaStream) uncaptured(call string) error {
	captured, _ := h.captured() // where this query fails, the call itself fails, too
	if !captured {
		return nil
	}
	return h.forbidden(call)
}

// captured queries the driver whether the stream is being captured.
func (h *cudaStream) captured() (captured bool, err error) {
	if h.captures == nil {
		return false, nil
	}
	var status cudadrv.CaptureStatus
	err = h.guard(func() (err error) {
		status, err = h.captures.StreamIsCapturing(h.stream)
		return err
	})
	if errors.Is(err, cudadrv.CaptureImplicit) {
		return true, nil
	}
	return err == nil && status != cudadrv.CaptureNone, err
}

// uncapturedMark returns the error of a call on a mark: a *CaptureError if a capture has the mark that
// began and ended since the query before the record. It is no forbidden call: a request that is refused
// now may have begun after the capture.
func (h *cudaStream) uncapturedMark(err error) error {
	if errors.Is(err, fence.ErrCaptured) {
		h.lost.Add(1)
		return &CaptureError{Stream: h.id, Call: "cuEventRecord"}
	}
	return err
}

// shortage returns the error of a refused claim: a *CaptureError if a capture has forbidden a call on
// the stream since the claim began, since that may be the reason.
func (h *cudaStream) shortage(forbiddenCalls uint64, err error) error {
	if h.forbiddenCalls.Load() != forbiddenCalls {
		return &CaptureError{Stream: h.id, Call: "cuEventRecord", Err: err}
	}
	return err
}

// mark records the present end of the stream. It queries the mark once, since a capture may have begun and
// ended during the record, unseen by the queries for captures: such a mark would never pass, and is recorded
// again. A mark whose query fails is lost.
func (h *cudaStream) mark() (mark fence.Mark, err error) {
	for range maxRecords {
		if mark, err = h.markOnce(); !errors.Is(err, fence.ErrCaptured) {
			return mark, err
		}
		h.lost.Add(1)
	}
	return mark, err
}

// maxRecords bounds the records of a mark. Not fewer: one capture takes one. Not more: a driver that fails
// each query would keep the caller.
const maxRecords = 3

// markOnce is mark, and fails with fence.ErrCaptured if a capture that has ended has the mark.
func (h *cudaStream) markOnce() (mark fence.Mark, err error) {
	if err = h.enter("cuEventRecord"); err != nil {
		return mark, err
	}
	defer h.announcement.leave()
	if mark, err = h.record(); err != nil {
		return mark, err
	}
	err = h.guard(func() error {
		_, err := h.fences.Passed(mark)
		return err
	})
	if err != nil {
		h.discard(mark)
		return fence.Mark{}, err
	}
	return mark, nil
}

// record is markOnce for a call that has entered, without the query of the mark.
func (h *cudaStream) record() (mark fence.Mark, err error) {
	err = h.guard(func() (err error) {
		mark, err = h.fences.Record(h.stream)
		return err
	})
	if err != nil {
		return mark, err
	}
	if err = h.uncaptured("cuEventRecord"); err != nil { // a capture may have the mark: no query of it
		h.lost.Add(1)
		h.discard(mark)
		return fence.Mark{}, err
	}
	return mark, nil
}

// errHeld says that no fence of a stream can be recorded while a graph has its memory.
var errHeld = errors.New("vram: a captured graph holds the memory")

// recording is the stream for its timeline.
type recording cudaStream

// Enter implements fence.Recording.
func (r *recording) Enter() error {
	if r.held.Load() {
		return errHeld
	}
	return (*cudaStream)(r).enter("cuEventRecord")
}

// Check implements fence.Recording.
func (r *recording) Check() error { return (*cudaStream)(r).uncaptured("cuEventRecord") }

// Leave implements fence.Recording.
func (r *recording) Leave() { r.announcement.leave() }

// discard releases a mark. An event that the driver keeps does no harm.
func (h *cudaStream) discard(m fence.Mark) {
	_ = h.guard(func() error { return h.fences.Release(m) })
}

// synchronize waits for the stream's work. Its error is a *StrandedError where that does not come to an end,
// and a *CaptureError where the stream is being captured.
func (h *cudaStream) synchronize() error {
	if err := h.enter("cuStreamSynchronize"); err != nil {
		return err
	}
	defer h.announcement.leave()
	return h.await()
}

// await is synchronize for a call that has entered, or on a stream that is closed.
func (h *cudaStream) await() error {
	if k, ok := h.strand.Load().(stranding); ok {
		return k.await(h, h.device)
	}
	return h.guard(func() error { return h.device.StreamSynchronize(h.stream) })
}

// zero sets a buffer to zero.
func (h *cudaStream) zero(b Buffer) error {
	if err := h.enter("cuMemsetD8Async"); err != nil {
		return err
	}
	defer h.announcement.leave()
	err := h.guard(func() error { return h.device.MemsetD8Async(b.Ptr(), 0, b.bytes, h.stream) })
	if err != nil {
		return fmt.Errorf("vram: zeroing a buffer of %d bytes: %w", b.bytes, err)
	}
	return nil
}

// precede makes later work of the stream wait, on the device, for a mark of another stream.
func (h *cudaStream) precede(m fence.Mark) error {
	if !h.begin() {
		return h.closed()
	}
	defer h.done()
	if err := h.enter("cuStreamWaitEvent"); err != nil {
		return err
	}
	defer h.announcement.leave()
	return h.guard(func() error { return h.fences.Precede(m, h.stream) })
}

// follow makes later work of the stream wait for all work submitted to another stream, and returns
// the number of a fence that covers that work: 0 if it has finished, since the stream was closed.
func (h *cudaStream) follow(from *fence.Timeline, doing string) (number uint64, err error) {
	if !h.begin() {
		return 0, h.closed()
	}
	defer h.done()
	if err = h.enter("cuStreamWaitEvent"); err != nil {
		return 0, err
	}
	defer h.announcement.leave()
	err = h.guard(func() (err error) {
		number, err = from.Order(h.stream)
		return err
	})
	of := h
	if r, ok := from.Recording().(*recording); ok {
		of = (*cudaStream)(r)
	}
	switch {
	case errors.Is(err, fence.ErrShut):
		return 0, of.closed()
	case errors.Is(err, fence.ErrCaptured): // a capture that was not announced began and ended within the call
		err = &CaptureError{Stream: of.id, Call: "cuEventRecord"}
	}
	if err != nil {
		return 0, fmt.Errorf("vram: %s: %w", doing, err)
	}
	return number, nil
}

// waitFor makes later work of the stream wait, on the device, for all present work of another stream. It
// makes two driver calls, and the queries whether either stream is being captured. It allocates nothing. A
// closed stream needs no waiting.
func (h *cudaStream) waitFor(other *cudaStream) error {
	if !h.begin() {
		return h.closed()
	}
	defer h.done()
	if !other.begin() {
		if other.line.Finished() {
			return nil
		}
		return other.closed() // it is being closed
	}
	defer other.done()
	if err := h.enter("cuStreamWaitEvent"); err != nil {
		return err
	}
	defer h.announcement.leave()
	if err := other.enter("cuEventRecord"); err != nil {
		return err
	}
	defer other.announcement.leave()
	return h.follows(other)
}

// follows is waitFor for a call that has entered both streams.
func (h *cudaStream) follows(other *cudaStream) error {
	m, err := other.record()
	if err != nil {
		return err
	}
	defer other.discard(m)
	return other.uncapturedMark(h.guard(func() error { return h.fences.Precede(m, h.stream) }))
}

// idle reports whether the stream has finished all its work. It is false for a captured or closed
// stream, which is not queried.
func (h *cudaStream) idle() (idle bool) {
	if !h.begin() {
		return false
	}
	defer h.done()
	if h.enter("cuStreamQuery") != nil {
		return false
	}
	defer h.announcement.leave()
	err := h.guard(func() (err error) {
		idle, err = h.device.StreamQuery(h.stream)
		return err
	})
	return idle && err == nil
}

// guard turns a panic of the driver into an error, and reports it.
func (h *cudaStream) guard(call func() error) error { return guard(h.panics, call) }
