package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/jsonform"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/streams"
)

var (
	// ErrNotLive refuses work on a buffer that was freed or handed over, or on a stale copy of one. It is the kind of
	// *vram.NotLiveError, which names the call and the buffer; a launch has it in an *ArgumentError.
	ErrNotLive = streams.ErrNotLive
	// ErrForeign refuses work on a buffer, or with a function, of another device.
	ErrForeign = streams.ErrForeign
	// ErrAsleep refuses work on a buffer of an arena that sleeps: see package cuda/sleep.
	ErrAsleep = streams.ErrAsleep
	// ErrFrozen refuses a write to a buffer that is frozen: see Context.Freeze. It is the kind of *FrozenError.
	ErrFrozen = streams.ErrFrozen
	// ErrGraphMemory refuses to freeze a buffer of a graph, whose launches write it.
	ErrGraphMemory = streams.ErrGraphMemory
	// ErrNotOpen refuses a call of a nil, zero or closed Context, and of a nil or zero Module, Function or Graph.
	ErrNotOpen = streams.ErrNotOpen
	// ErrNilContext refuses a nil context.Context.
	ErrNilContext = futures.ErrNilContext
	// ErrUnloaded refuses a function whose module was unloaded.
	ErrUnloaded = errors.New("cuda: the module is unloaded")
	// ErrModuleInUse refuses to unload a module of which an open graph has a kernel.
	ErrModuleInUse = errors.New("cuda: a graph has a kernel of the module")
	// ErrGraphClosed refuses a launch of a graph that was closed.
	ErrGraphClosed = errors.New("cuda: the graph is closed")
	// ErrCapturing refuses a call that waits for a stream, or cannot be part of a graph, while the stream is captured. It is
	// the kind of every *vram.CaptureError.
	ErrCapturing = streams.ErrCapturing
	// ErrOverlap refuses an operation with an output that shares memory with another operand. Launch does not check it: only
	// the packages above know which operands a kernel reads and writes.
	ErrOverlap = errors.New("the memory overlaps an output")
	// ErrArgumentCount refuses a launch with more or fewer arguments than the kernel has parameters.
	ErrArgumentCount = errors.New("cuda: wrong number of arguments")
	// ErrArgumentSize refuses an argument that has not the size of its parameter.
	ErrArgumentSize = errors.New("cuda: wrong size of an argument")
	// ErrArgumentType refuses an argument that has the size of its parameter but not its type, if the kernel's PTX is
	// known (Function.Parameters). Integers of both signs fit .u8 to .u64, which compilers write for both; .s8 to .s64 and .f32
	// and .f64 take the Go type of that name, .f16 a uint16, and .b8 to .b64 all of their size. A pointer, which PTX marks
	// .ptr, takes a buffer, Null and a cudadrv.Ptr, but no uint64; a .u64 without the mark takes all four. An array, as .b8[24],
	// takes all of its size, but a struct or an array only if it is not aligned to more bytes than the parameter.
	ErrArgumentType = errors.New("cuda: wrong type of an argument")
	// ErrNoParameter says that a kernel has no parameter of that index.
	ErrNoParameter = errors.New("cuda: the kernel has no such parameter")
)

// errParameterSpace refuses an argument of the right size.
var errParameterSpace = fmt.Errorf("%w: with the arguments before it, it takes more than %d bytes", ErrArgumentSize, maxParamBytes)

// named adds the call to the error of a buffer that is not live, or frozen.
func named(call string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*streams.NotLiveError](err); ok && e.Call == "" {
		with := *e
		with.Call = call
		return &with
	}
	if e, ok := errors.AsType[*FrozenError](err); ok && e.Call == "" {
		return &FrozenError{Call: call, Frozen: e.Frozen, Bytes: e.Bytes}
	}
	return err
}

// ofBytes adds the buffer to the error of one that is frozen.
func ofBytes(err error, b Buffer) error {
	if e, ok := errors.AsType[*FrozenError](err); ok {
		return &FrozenError{Call: e.Call, Frozen: e.Frozen, Bytes: b.Bytes()}
	}
	return err
}

// ArgumentError refuses a launch, before anything was submitted, for one of its arguments. Launches with the same mistake may
// return the same value, also at the same time: do not change it.
type ArgumentError struct {
	Kernel    string
	Index     int    // from 0; -1 with ErrPackedBytes
	Parameter string // the parameter's name; "" where the kernel's text is not known
	Type      string // the parameter's, as in Parameter
	Got       string // the argument: "int32", "a buffer", the type of a struct
	// Err is ErrNotLive, ErrForeign, ErrAsleep, ErrArgumentSize, ErrArgumentType, ErrArgumentCount, ErrPackedBytes, ErrNotBuffer,
	// ErrNoParameter, a *FrozenError, a *ValueError or a *RangeError.
	Err   error
	Bytes int64 // of the argument, or of packed parameters; with ErrArgumentCount the number of arguments
	Want  int64 // of the kernel's parameter, or of all; with ErrArgumentCount the number of parameters, -1: not known
}

// Error names the kernel, the argument and its parameter.
func (e *ArgumentError) Error() string {
	if errors.Is(e.Err, ErrArgumentCount) {
		return fmt.Sprintf("cuda: kernel %s has %s, not %d", e.Kernel, units.Count(int(e.Want), "parameter"), e.Bytes)
	}
	if errors.Is(e.Err, ErrPackedBytes) {
		return fmt.Sprintf("cuda: kernel %s has %s of parameters, not %d", e.Kernel, units.Count(int(e.Want), "byte"), e.Bytes)
	}
	text := fmt.Sprintf("cuda: argument %d of kernel %s", e.Index, e.Kernel)
	if e.Parameter != "" {
		text += ", parameter " + e.Parameter
	}
	return text + ": " + e.reason()
}

// reason returns the text of the error without the argument.
func (e *ArgumentError) reason() string {
	switch typ := e.Type; {
	case errors.Is(e.Err, ErrArgumentType):
		return fmt.Sprintf("%s for %s, which takes %s", e.Got, typ, takenBy(typ))
	case e.Err == ErrArgumentSize: //nolint:errorlint // not with errParameterSpace, which says more
		if typ == "" {
			typ = "a parameter"
		}
		text := fmt.Sprintf("%s of %s for %s", e.Got, units.Count(int(e.Bytes), "byte"), typ)
		if e.Want >= 0 {
			text += fmt.Sprintf(" of %d", e.Want)
		}
		return text
	}
	if e, ok := errors.AsType[*streams.NotLiveError](e.Err); ok && e.Call == "" {
		return strings.TrimPrefix(e.Error(), ErrNotLive.Error()+": ") // the argument is the buffer
	}
	return strings.TrimPrefix(fmt.Sprint(e.Err), "cuda: ")
}

// Unwrap returns the reason.
func (e *ArgumentError) Unwrap() error { return e.Err }

// MarshalJSON implements json.Marshaler: the reason is its text.
func (e *ArgumentError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kernel    string `json:"kernel"`
		Index     int    `json:"index"`
		Parameter string `json:"parameter"`
		Type      string `json:"type"`
		Got       string `json:"got"`
		Err       any    `json:"err"`
		Bytes     int64  `json:"bytes"`
		Want      int64  `json:"want"`
	}{e.Kernel, e.Index, e.Parameter, e.Type, e.Got, jsonform.Error(e.Err), e.Bytes, e.Want})
}

// RangeError refuses a part of a buffer that is not within it, or ranges of a copy that differ in length.
type RangeError struct {
	Offset      int64 `json:"offset"`
	Bytes       int64 `json:"bytes"`
	BufferBytes int64 `json:"buffer_bytes"`
}

// Error includes the range and the buffer's length.
func (e *RangeError) Error() string {
	return fmt.Sprintf("cuda: %d bytes from %d on are not within the buffer's %d", e.Bytes, e.Offset, e.BufferBytes)
}

// LengthError refuses a copy between ranges of different lengths.
type LengthError struct {
	DstBytes int64 `json:"dst_bytes"`
	SrcBytes int64 `json:"src_bytes"`
}

// Error includes both lengths.
func (e *LengthError) Error() string {
	return fmt.Sprintf("cuda: a copy of %d bytes to %d", e.SrcBytes, e.DstBytes)
}

// LaunchError is a launch that the driver refused.
type LaunchError struct {
	Kernel   string           `json:"kernel"`
	Geometry cudadrv.Geometry `json:"geometry"`
	Err      error            `json:"err"` // a *cudadrv.CallError
}

// Error names the kernel and its geometry.
func (e *LaunchError) Error() string {
	return fmt.Sprintf("cuda: launching %s, grid %v, block %v, %d bytes of shared memory: %v",
		e.Kernel, e.Geometry.Grid, e.Geometry.Block, e.Geometry.SharedBytes, e.Err)
}

// Unwrap returns the driver's error.
func (e *LaunchError) Unwrap() error { return e.Err }

// MarshalJSON implements json.Marshaler: the driver's error is its text.
func (e *LaunchError) MarshalJSON() ([]byte, error) {
	type plain LaunchError
	return json.Marshal(struct {
		plain
		Err any `json:"err"`
	}{plain(*e), jsonform.Error(e.Err)})
}

// notOpen returns ErrNotOpen of an argument.
func notOpen(argument string) error { return &cudadrv.NotOpenError{Argument: argument} }

// unsupported returns the error of a missing feature.
func unsupported(function string) error {
	return &cudadrv.CallError{Func: function, Result: cudadrv.NotSupported, Detail: "the driver has no such interface"}
}
