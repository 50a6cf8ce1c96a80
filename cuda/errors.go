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
)

// named adds the call to the error of a buffer that is not live, or frozen.
func named(call string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*streams.NotLiveError](err); ok && e.Call == "" {
		return &streams.NotLiveError{Call: call, Bytes: e.Bytes, Zero: e.Zero}
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

// ArgumentError refuses a launch, before anything was submitted, for one of its arguments.
type ArgumentError struct {
	Kernel string
	Index  int   // from 0
	Err    error // ErrNotLive, ErrForeign, ErrAsleep, ErrArgumentSize, ErrArgumentCount, a *FrozenError or a *RangeError
	Bytes  int64 // of the argument; with ErrArgumentCount the number of arguments
	Want   int64 // of the kernel's parameter; with ErrArgumentCount the number of parameters, -1: not known
}

// Error names the kernel and the argument.
func (e *ArgumentError) Error() string {
	switch {
	case errors.Is(e.Err, ErrArgumentCount):
		return fmt.Sprintf("cuda: kernel %s has %s, not %d", e.Kernel, units.Count(int(e.Want), "parameter"), e.Bytes)
	case errors.Is(e.Err, ErrArgumentSize):
		return fmt.Sprintf("cuda: argument %d of kernel %s has %s, its parameter %d", e.Index, e.Kernel, units.Count(int(e.Bytes), "byte"), e.Want)
	}
	err := e.Err
	if errors.Is(err, ErrNotLive) {
		err = ErrNotLive // the argument is the buffer
	}
	return fmt.Sprintf("cuda: argument %d of kernel %s: %s", e.Index, e.Kernel, strings.TrimPrefix(fmt.Sprint(err), "cuda: "))
}

// Unwrap returns the reason.
func (e *ArgumentError) Unwrap() error { return e.Err }

// MarshalJSON implements json.Marshaler: the reason is its text.
func (e *ArgumentError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kernel string `json:"kernel"`
		Index  int    `json:"index"`
		Err    any    `json:"err"`
		Bytes  int64  `json:"bytes"`
		Want   int64  `json:"want"`
	}{e.Kernel, e.Index, jsonform.Error(e.Err), e.Bytes, e.Want})
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
