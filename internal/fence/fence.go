package fence

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv"
)

// ErrShut says that a stream is being closed: no fence is taken there any more.
var ErrShut = errors.New("fence: the stream is being closed")

// ErrCaptured says that a mark is part of a graph: its stream was being captured when it was recorded. The mark never passes and is
// good for nothing but Release. While the capture is under way a question about the mark invalidates that.
var ErrCaptured = fmt.Errorf("fence: the mark is part of a graph: %w", cudadrv.CapturedEvent)

// Mark is a recorded point. The zero Mark has always passed.
type Mark struct {
	event cudadrv.Event
}

// Zero reports whether the mark stands for nothing.
func (m Mark) Zero() bool { return m == Mark{} }

// spareLimit bounds the events that are kept. Not smaller: a trim marks every stream at once. Not
// larger: an event is cheap to make again.
const spareLimit = 64

// Events takes and watches fences by events of one device. All methods may be called from any goroutine; Record, Passed and
// Precede do not wait for the device, Wait does.
type Events struct {
	device cudadrv.Device
	spare  chan cudadrv.Event
}

// NewEvents takes fences on a device. It makes no driver call.
func NewEvents(d cudadrv.Device) *Events {
	return &Events{device: d, spare: make(chan cudadrv.Event, spareLimit)}
}

// Record marks the present end of the stream. The mark is given up by Release, once.
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

// Passed reports whether the device has got to the mark. Passed, Wait and Precede fail with ErrCaptured for a mark that is part of a graph.
func (e *Events) Passed(m Mark) (bool, error) {
	if m.Zero() {
		return true, nil
	}
	passed, err := e.device.EventQuery(m.event)
	if err != nil {
		return false, failed(err)
	}
	return passed, nil
}

// Wait waits until the device has got there.
func (e *Events) Wait(m Mark) error {
	if m.Zero() {
		return nil
	}
	if err := e.device.EventSynchronize(m.event); err != nil {
		return failed(err)
	}
	return nil
}

// Precede makes what is submitted to the stream from now on wait, on the device, for the mark. The mark may be given
// up once it has returned.
func (e *Events) Precede(m Mark, s cudadrv.Stream) error {
	if m.Zero() {
		return nil
	}
	if err := e.device.StreamWaitEvent(s, m.event); err != nil {
		return failed(err)
	}
	return nil
}

// failed is the error of a call on an event that was recorded. CUDA answers CUDA_ERROR_CAPTURED_EVENT while the capture is under way
// that the record is part of, and CUDA_ERROR_INVALID_VALUE once it is over; nothing else about such a call can be invalid.
func failed(err error) error {
	if errors.Is(err, cudadrv.CapturedEvent) || errors.Is(err, cudadrv.InvalidValue) {
		return fmt.Errorf("%w: %w", ErrCaptured, err)
	}
	return fmt.Errorf("fence: %w", err)
}

// Release gives up a mark.
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

// Close gives up the events that are kept.
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
