package streams

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/jsonform"
)

// ErrDeviceFailed is the kind of every *FaultError and *DeviceFailedError.
var ErrDeviceFailed = errors.New("vram: the device failed")

// FaultError says that a kernel or a copy failed on the device, such as one that accessed memory that is not mapped. The
// device's context is lost: all later calls fail. One call of package cuda returns it, the first that learns of the fault; later
// calls return a *DeviceFailedError.
type FaultError struct {
	Err error `json:"err"` // of the driver call that has learned of the fault
	// Launches are the launches that can have failed, the youngest first: one where it is known. They are known of a simulated
	// device that executes kernels, and with Config.FaultPlaces; else there are none.
	Launches []FailedLaunch `json:"launches"`
	recorded bool           // launches were
}

// FailedLaunch is a launch of a kernel, a library or a graph that has failed, or can have.
type FailedLaunch struct {
	Kernel string     `json:"kernel"` // by name; "graph of 3 kernels"
	Place  site.Stack `json:"place"`  // of the launch in the program; of a kernel in a graph, of its capture
	// Arguments are buffers that the launch has, "argument 0: 512 bytes, tag ..."; on a device that executes kernels the one
	// that the fault concerns.
	Arguments []string `json:"arguments"`
}

// String has the kernel and the place.
func (l FailedLaunch) String() string {
	text := "kernel " + l.Kernel
	if strings.Contains(l.Kernel, " ") {
		text = l.Kernel
	}
	if l.Place.Known() {
		text += ", launched at " + l.Place.String()
	}
	return text
}

// MarshalJSON implements json.Marshaler: a list without arguments is [].
func (l FailedLaunch) MarshalJSON() ([]byte, error) {
	type plain FailedLaunch
	l.Arguments = jsonform.List(l.Arguments)
	return json.Marshal(plain(l))
}

// mostListed bounds the launches in the text of a FaultError.
const mostListed = 4

// Error has the driver's error, and the launches that can have failed with their buffers.
func (e *FaultError) Error() string {
	text := "vram: the device failed: " + strings.TrimPrefix(fmt.Sprint(e.Err), "vram: ")
	switch {
	case len(e.Launches) == 1 && strings.Contains(text, e.Launches[0].Place.String()): // the driver's text has it
		return text
	case len(e.Launches) == 0 && !e.recorded:
		return text + "; Config.FaultPlaces records where kernels are launched"
	case len(e.Launches) == 0:
		return text + "; no recorded launch was unfinished"
	case len(e.Launches) > 1:
		text += fmt.Sprintf("; one of %d launches that had not finished", len(e.Launches))
	}
	for _, l := range e.Launches[:min(len(e.Launches), mostListed)] {
		text += "; " + l.String()
		if len(l.Arguments) > 0 {
			text += ", with " + strings.Join(l.Arguments, ", ")
		}
	}
	if more := len(e.Launches) - mostListed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Unwrap returns the driver's error.
func (e *FaultError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrDeviceFailed) hold.
func (e *FaultError) Is(target error) bool { return target == ErrDeviceFailed }

// MarshalJSON implements json.Marshaler: the driver's error is its text, and a list without launches is [].
func (e *FaultError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Err      any            `json:"err"`
		Launches []FailedLaunch `json:"launches"`
	}{jsonform.Error(e.Err), jsonform.List(e.Launches)})
}

// DeviceFailedError is the error of a call on a device that failed before. It wraps the first error, whose text it does not
// repeat.
type DeviceFailedError struct {
	Func  string      `json:"func"` // the CUDA function that the call made; may be empty
	First *FaultError `json:"first"`
}

// Error has the result and the place of the first fault.
func (e *DeviceFailedError) Error() string {
	text := "vram: the device failed before"
	if e.Func != "" {
		text = "vram: " + e.Func + ": the device failed before"
	}
	if e.First == nil {
		return text
	}
	if c, ok := errors.AsType[*cudadrv.CallError](e.First.Err); ok {
		text += ": " + c.Result.String()
	}
	switch n := len(e.First.Launches); n {
	case 0:
		return text
	case 1:
		return text + " of " + e.First.Launches[0].String()
	default:
		return text + fmt.Sprintf(" of one of %d launches; the youngest: %v", n, e.First.Launches[0])
	}
}

// Unwrap returns the first error.
func (e *DeviceFailedError) Unwrap() error {
	if e.First == nil {
		return ErrDeviceFailed
	}
	return e.First
}

// Faults knows the first fault of a device. The zero Faults is ready. It is safe for concurrent use.
//
//	works --failed--> failed, and not told --Tell--> told
type Faults struct {
	first atomic.Pointer[FaultError]
	told  atomic.Bool
}

// Failed returns err, or a *DeviceFailedError if the device has failed. device, whose calls are not translated, is asked whether
// it fails still: some results also refuse a call of their own. launches returns those that can have failed.
func (f *Faults) Failed(err error, device cudadrv.Device, launches func() ([]FailedLaunch, bool)) error {
	if err == nil || errors.Is(err, ErrDeviceFailed) {
		return err
	}
	c, ok := errors.AsType[*cudadrv.CallError](err)
	if !ok || !c.Result.Sticky() {
		return err
	}
	if f.first.Load() == nil {
		if _, _, again := device.MemGetInfo(); again == nil {
			return err
		}
		first := &FaultError{Err: err}
		if first.Launches = executed(err); first.Launches == nil {
			first.Launches, first.recorded = launches()
		}
		f.first.CompareAndSwap(nil, first)
	}
	return &DeviceFailedError{Func: c.Func, First: f.first.Load()}
}

// Tell returns the *FaultError in place of the first *DeviceFailedError that it gets, and any other error as it is.
func (f *Faults) Tell(err error) error {
	if failed, ok := errors.AsType[*DeviceFailedError](err); ok && f.told.CompareAndSwap(false, true) {
		return failed.First
	}
	return err
}

// executed returns the launch in the error of a device that executes kernels; nil for other errors.
func executed(err error) []FailedLaunch {
	var by interface {
		FailedLaunch() (kernel string, launched site.Stack, argument string)
	}
	if !errors.As(err, &by) {
		return nil
	}
	l := FailedLaunch{}
	var argument string
	if l.Kernel, l.Place, argument = by.FailedLaunch(); argument != "" {
		l.Arguments = []string{argument}
	}
	return []FailedLaunch{l}
}
