package vramtest

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
	"github.com/go-vram/vram/cudadrv/site"
)

// Library has compute stand in for a library, such as cuBLAS or cuFFT, of which a machine without a GPU has nothing: the device
// calls it for the work of cuda.Context.LaunchWith with that name, and not the function that would call the library. It runs when
// it is the work's turn on the stream, in a graph at each launch, on real bytes, as with the option Kernels, which Library includes.
//
// compute gets the arguments of LaunchWith, in their order: see Slice and Scalar. The caller of LaunchWith passes what the work
// depends on, such as sizes, as values. compute sees no other memory, and a change of an argument that is declared In is a fault. An error of
// compute is a fault, too: it fails the test (see Device.Faults) and ends the work of the device, as on hardware. compute runs
// under the lock of the simulated driver: it must not call a device, nor end the test's goroutine as t.FailNow does.
func Library(name string, compute func(*LibraryCall) error) Option {
	return func(s *settings) {
		if s.kernels == nil {
			s.kernels = &KernelConfig{}
		}
		if s.libraries == nil {
			s.libraries = map[string]func(*LibraryCall) error{}
		}
		s.libraries[name] = compute
	}
}

// LibraryCall is work of a library. It is valid during the call of the function that stands in for the library.
type LibraryCall struct {
	arguments []libraryArgument
	err       error // the first misuse
}

// libraryArgument is an argument with a copy of its bytes: pages that follow each other may lie in several places.
type libraryArgument struct {
	cudadrv.LibraryArgument

	bytes []byte
}

// memory reports whether the argument is a buffer.
func (a *libraryArgument) memory() bool { return a.Read || a.Write }

// Arguments returns the number of arguments.
func (c *LibraryCall) Arguments() int {
	if c == nil {
		return 0
	}
	return len(c.arguments)
}

// element is a type of the elements of Slice: numbers of a fixed size, and bool. Half-precision numbers are uint16.
type element interface {
	~bool | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64 | ~complex128
}

// Slice returns the elements of a buffer, or of its part, that is an argument, counted from 0. Of an argument that is declared
// Out or InOut, the elements that the function leaves are the result. An index of no buffer, and a size that is no multiple of
// the element's, give nil and are a fault.
func Slice[T element](c *LibraryCall, argument int) []T {
	const memory = true
	a := c.argument(argument, memory)
	if a == nil {
		return nil
	}
	size := int(unsafe.Sizeof(*new(T)))
	if len(a.bytes)%size != 0 {
		c.refuse(fmt.Errorf("argument %d has %d bytes, and elements have %d", argument, len(a.bytes), size))
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(a.bytes))), len(a.bytes)/size)
}

// Scalar returns the number of an argument by value, counted from 0. An index of no value, and another size, give 0 and are a
// fault.
func Scalar[T element](c *LibraryCall, argument int) (v T) {
	const memory = false
	a := c.argument(argument, memory)
	if a == nil {
		return v
	}
	if size := int(unsafe.Sizeof(v)); len(a.Value) != size {
		c.refuse(fmt.Errorf("argument %d has %d bytes, and the number has %d", argument, len(a.Value), size))
		return v
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), len(a.Value)), a.Value)
	return v
}

// argument returns an argument that is memory, or a value; nil if there is no such one.
func (c *LibraryCall) argument(index int, memory bool) *libraryArgument {
	switch {
	case c == nil:
	case index < 0 || index >= len(c.arguments):
		c.refuse(fmt.Errorf("there is no argument %d of %d", index, len(c.arguments)))
	case c.arguments[index].memory() && !memory:
		c.refuse(fmt.Errorf("argument %d is a buffer", index))
	case !c.arguments[index].memory() && memory:
		c.refuse(fmt.Errorf("argument %d is a value", index))
	default:
		return &c.arguments[index]
	}
	return nil
}

func (c *LibraryCall) refuse(err error) {
	if c.err == nil {
		c.err = err
	}
}

// LibraryError is work of a library that failed.
type LibraryError struct {
	Library  string
	Launched site.Stack // the place of LaunchWith; of work in a graph, of its capture
	Err      error
}

// Error names the library, and the place of the launch.
func (e *LibraryError) Error() string {
	text := fmt.Sprintf("the stand-in for %s: %v", e.Library, e.Err)
	if e.Launched.Known() {
		text += fmt.Sprintf("; launched at %v", e.Launched)
	}
	return text
}

// FailedLaunch returns the library and the place of the launch.
func (e *LibraryError) FailedLaunch() (library string, launched site.Stack, argument string) {
	if e == nil {
		return "", nil, ""
	}
	return e.Library, e.Launched, ""
}

// Unwrap returns the error of the function that stands in for the library, or the reason of a fault.
func (e *LibraryError) Unwrap() error { return e.Err }

// Result is CUDA's code.
func (e *LibraryError) Result() cudadrv.Result {
	if e != nil && errors.Is(e.Err, errGone) {
		return cudadrv.IllegalAddress
	}
	return cudadrv.LaunchFailed
}

// errGone is memory that is not mapped when the work runs.
var errGone = errors.New("its memory is not mapped")

// librarian is an executor with functions that stand in for libraries.
type librarian struct {
	*ptxrun.Executor

	libraries map[string]func(*LibraryCall) error
	helpers   *site.Helpers // left out of places
}

var (
	_ sim.Librarian = (*librarian)(nil)
	_ sim.Follower  = (*librarian)(nil)
)

// extent finds the accessible bytes around an address: see sim.Execution.
type extent = func(p cudadrv.Ptr) (start cudadrv.Ptr, b []byte, ok bool)

// Library is sim.Librarian's.
func (l *librarian) Library(w cudadrv.LibraryWork) sim.Execution {
	compute := l.libraries[w.Library]
	if compute == nil {
		return nil
	}
	for _, a := range w.Arguments {
		if a.Write {
			l.Claimed(a.Ptr, a.Bytes)
		}
	}
	place := l.helpers.Without(site.Deep(0))
	return func(memory func(p cudadrv.Ptr) (start cudadrv.Ptr, b []byte, ok bool)) error {
		if err := execute(compute, w.Arguments, memory); err != nil {
			return l.Failed(&LibraryError{w.Library, place, err})
		}
		return nil
	}
}

// execute calls the function with copies of the arguments, and writes those back that it may change.
func execute(compute func(*LibraryCall) error, arguments []cudadrv.LibraryArgument, memory extent) error {
	c := &LibraryCall{arguments: make([]libraryArgument, len(arguments))}
	for i, a := range arguments {
		if c.arguments[i].LibraryArgument = a; c.arguments[i].memory() {
			c.arguments[i].bytes = aligned(a.Bytes)
			if err := c.arguments[i].transfer(memory, func(copied, device []byte) { copy(copied, device) }); err != nil {
				return fmt.Errorf("argument %d: %w", i, err)
			}
		}
	}
	err := compute(c) // may set c.err
	if err = errors.Join(err, c.err); err != nil {
		return err
	}
	for i := range c.arguments {
		a := &c.arguments[i]
		if !a.memory() || a.Write {
			continue
		}
		same := true
		if err := a.transfer(memory, func(copied, device []byte) { same = same && bytes.Equal(copied, device) }); err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
		if !same {
			return fmt.Errorf("it changed argument %d, which is declared In", i)
		}
	}
	for i := range c.arguments {
		if a := &c.arguments[i]; a.Write {
			if err := a.transfer(memory, func(copied, device []byte) { copy(device, copied) }); err != nil {
				return fmt.Errorf("argument %d: %w", i, err)
			}
		}
	}
	return nil
}

// aligned makes memory for elements of any type.
func aligned(size int64) []byte {
	const word = 8
	words := make([]uint64, (size+word-1)/word)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
}

// transfer calls each for the pieces of the copy and of the device's memory that belong together.
func (a *libraryArgument) transfer(memory extent, each func(copied, device []byte)) error {
	for done := int64(0); done < a.Bytes; {
		p := a.Ptr + cudadrv.Ptr(done) //nolint:gosec // not negative
		start, b, ok := memory(p)
		if !ok {
			return errGone
		}
		b = b[p-start:]
		n := min(int64(len(b)), a.Bytes-done)
		each(a.bytes[done:done+n], b[:n])
		done += n
	}
	return nil
}
