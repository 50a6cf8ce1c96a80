package fence

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv"
)

// ErrShut says that a stream is being closed: no more fences are recorded there.
var ErrShut = errors.New("fence: the stream is being closed")

// ErrCaptured says that a mark is part of a graph: its stream was being captured when it was recorded. The
// mark never passes and is only good for Release. A query of the mark during the capture invalidates the
// capture.
var ErrCaptured = fmt.Errorf("fence: the mark is part of a graph: %w", cudadrv.CapturedEvent)

// Mark is a recorded point. The zero Mark has always passed.
type Mark struct {
	event cudadrv.Event
}

// Zero reports whether the mark is the zero Mark.
func (m Mark) Zero() bool { return m == Mark{} }

// spareLimit bounds the events that are kept for reuse. Not smaller: a trim marks every stream at once. Not
// larger: an event is cheap to create again.
const spareLimit = 64

// Events records and queries fences by events of one device. It is safe for concurrent use. Record, Passed
// and Precede do not wait for the device, Wait does.
type Events struct {
	device cudadrv.Device
	spare  chan cudadrv.Event
}

// NewEvents returns a source of fences on a device. It makes no driver call.
func NewEvents(d cudadrv.Device) *Events {
	return &Events{device: d, spare: make(chan cudadrv.Event, spareLimit)}
}

// Record marks the present end of the stream. Release the mark once.
func (e *Events) Record(s cudadrv.Stream) (Mark, error) {
	event, err := e.take()
	if err != nil {
		return Mark{}, fmt.Errorf("fence: %w", err)
	}
	recorded := false
	defer func() { // also after a panic of the driver
		if !recorded {
			_ = e.Release(Mark{event: event}) // the record's error says more
		}
	}()
	if err := e.device.EventRecord(event, s); err != nil {
		return Mark{}, fmt.Errorf("fence: %w", err)
	}
	recorded = true
	return Mark{event: event}, nil
}

func (e *Events) take() (cudadrv.Event, error) {
	select {
	case event := <-e.spare:
		return event, nil
	default:
		return e.device.EventCreate()
	}
}

// Passed reports whether the device has reached the mark. Passed, Wait and Precede fail with ErrCaptured for
// a mark that is part of a graph.
func (e *Events) Passed(m Mark) (bool, error) {
	if m.Zero() {
		return true, nil
	}
	passed, err := e.device.EventQuery(m.event)
	return passed && err == nil, failed(err)
}

// Wait waits until the device has reached the mark.
func (e *Events) Wait(m Mark) error {
	if m.Zero() {
		return nil
	}
	return failed(e.device.EventSynchronize(m.event))
}

// Precede makes later work of the stream wait, on the device, for the mark. The mark may be released once
// Precede has returned.
func (e *Events) Precede(m Mark, s cudadrv.Stream) error {
	if m.Zero() {
		return nil
	}
	return failed(e.device.StreamWaitEvent(s, m.event))
}

// failed returns the error of a call on a recorded event, nil if it succeeded. CUDA returns
// CUDA_ERROR_CAPTURED_EVENT during the capture that contains the record, and CUDA_ERROR_INVALID_VALUE after
// it; nothing else about such a call can be invalid.
func failed(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, cudadrv.CapturedEvent) || errors.Is(err, cudadrv.InvalidValue) {
		return fmt.Errorf("%w: %w", ErrCaptured, err)
	}
	return fmt.Errorf("fence: %w", err)
}

// Release releases a mark.
func (e *Events) Release(m Mark) error {
	if m.Zero() {
		return nil
	}
	select {
	case e.spare <- m.event:
		return nil
	default:
		if err := e.device.EventDestroy(m.event); err != nil {
			return fmt.Errorf("fence: %w", err)
		}
		return nil
	}
}

// Close destroys the events that are kept for reuse.
func (e *Events) Close() error {
	var first error
	for {
		select {
		case event := <-e.spare:
			if err := e.device.EventDestroy(event); err != nil && first == nil {
				first = fmt.Errorf("fence: %w", err)
			}
		default:
			return first
		}
	}
}
