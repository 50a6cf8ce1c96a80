package ptxrun

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
)

// Error is a kernel that failed.
type Error struct {
	Err      error
	Kernel   string
	Launched site.Stack // the place of the launch; of one in a graph, of its capture or of Graph.SetArgs
	Argument *Argument  // the one that the fault concerns; nil where none is near, or Config has no Owners
}

// Argument is an argument of a launch that is an address: of the buffer with the address of the fault or, where no argument has
// it, of the one that ends closest below.
type Argument struct {
	Index  int    // from 0
	Name   string // of the parameter
	Buffer Buffer
}

// String names the parameter.
func (a *Argument) String() string {
	if a == nil {
		return "no parameter"
	}
	return fmt.Sprintf("parameter %d, %s", a.Index, a.Name)
}

// Buffer is memory that a program has allocated.
type Buffer struct {
	Ptr       cudadrv.Ptr
	Bytes     int64
	Tag       string
	Allocated site.Stack
	Freed     site.Stack // unknown while it lives
}

// String names a buffer by its size, tag and place.
func (b Buffer) String() string {
	text := fmt.Sprintf("the buffer of %d bytes", b.Bytes)
	if b.Tag != "" {
		text += fmt.Sprintf(" %q", b.Tag)
	}
	if b.Allocated.Known() {
		text += " allocated at " + b.Allocated.String()
	}
	return text
}

// Error returns the interpreter's text, with the argument and the place of the launch.
func (e *Error) Error() string {
	text := fmt.Sprint(e.Err)
	if a := e.Argument; a != nil {
		if strings.Contains(text, a.Buffer.String()) {
			text += fmt.Sprintf("; the buffer is %v", a)
		} else {
			text += fmt.Sprintf("; %v, is %v", a, a.Buffer)
		}
	}
	if e.Launched.Known() {
		text += fmt.Sprintf("; launched at %v", e.Launched)
	}
	return text
}

// Unwrap returns the *interp.Fault.
func (e *Error) Unwrap() error { return e.Err }

// FailedLaunch returns the kernel, the place of its launch, and the argument as text; "" where none is near.
func (e *Error) FailedLaunch() (kernel string, launched site.Stack, argument string) {
	if e == nil {
		return "", nil, ""
	}
	if a := e.Argument; a != nil {
		argument = fmt.Sprintf("%v: %v", a, a.Buffer)
	}
	return e.Kernel, e.Launched, argument
}

// Result is CUDA's code for such a mistake.
func (e *Error) Result() cudadrv.Result {
	if e == nil {
		return cudadrv.LaunchFailed
	}
	var f *interp.Fault
	if !errors.As(e.Err, &f) {
		return cudadrv.LaunchFailed
	}
	switch f.Kind { //nolint:exhaustive // the others are failures of the kernel without an address
	case interp.OutOfBounds, interp.NotLive:
		return cudadrv.IllegalAddress
	case interp.Misaligned:
		return cudadrv.MisalignedAddress
	case interp.Assertion:
		return cudadrv.AssertionFailed
	case interp.Unsupported:
		return cudadrv.NotSupported
	default:
		return cudadrv.LaunchFailed
	}
}

// launched is a launch, for its fault.
type launched struct {
	sim.KernelLaunch

	entry  *ptx.Function
	buffer func(p cudadrv.Ptr) (Buffer, bool) // nil without Owners
}

// failed returns the error of a launch that failed.
func (l *launched) failed(err error) error {
	e := &Error{Err: err, Kernel: l.Kernel, Launched: l.Place}
	var f *interp.Fault
	if errors.As(err, &f) && f.Bytes > 0 && f.Space == ptx.Global && l.buffer != nil {
		var inside bool
		e.Argument, inside = l.argumentAt(cudadrv.Ptr(f.Address))
		if !inside && f.Kind != interp.OutOfBounds && f.Kind != interp.NotLive { // in other memory
			e.Argument = nil
		}
	}
	return e
}

// argumentAt returns the argument whose buffer has an address, or else the one whose buffer ends closest below it. Of several
// addresses in one buffer it is the closest that is not above, or else the first.
func (l *launched) argumentAt(p cudadrv.Ptr) (best *Argument, inside bool) {
	const pointerBytes = 8
	end := 0
	var nearest cudadrv.Ptr
	for i, v := range l.entry.Params {
		offset := (end + v.Alignment() - 1) / v.Alignment() * v.Alignment()
		end = offset + v.Bytes()
		if v.Bytes() != pointerBytes || end > len(l.Params) {
			continue
		}
		value := cudadrv.Ptr(binary.LittleEndian.Uint64(l.Params[offset:]))
		b, ok := l.buffer(value)
		if !ok || b.Ptr > p {
			continue
		}
		has := uint64(p-b.Ptr) < uint64(b.Bytes) //nolint:gosec // not negative
		at := b.Ptr
		switch {
		case has && value <= p:
			at = value
		case has:
			at-- // one above the address is the last of its buffer's
		}
		if best == nil || has && !inside || has == inside && at > nearest {
			best, inside, nearest = &Argument{Index: i, Name: v.Name, Buffer: b}, has, at
		}
	}
	return best, inside
}

// entryNamed returns a kernel of a module.
func entryNamed(m *ptx.Module, name string) *ptx.Function {
	for _, f := range m.Functions {
		if f.Entry && f.Name == name && f.Body != nil {
			return f
		}
	}
	return &ptx.Function{}
}
