package interp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/internal/jsonform"
)

// Kind says which rule a kernel broke.
type Kind uint8

// The kinds of faults.
const (
	NoFault          Kind = iota
	OutOfBounds           // an access to memory that is nobody's
	NotLive               // an access to memory that was freed, or that nobody allocated
	Misaligned            // an address that is no multiple of the size of the access
	ReadOnly              // a store to constants or to parameters
	Uninitialised         // a read of a register or of memory that was never written
	AsyncInFlight         // an access to the destination of a cp.async, or of a bulk copy, that nobody waited for
	WgmmaInFlight         // an access to a register of a wgmma.mma_async that nobody waited for
	WgmmaFence            // a wgmma.mma_async on registers that were accessed after the last wgmma.fence
	ProxyFence            // a wgmma.mma_async on shared memory that was written without a later fence.proxy.async
	SharedRace            // two threads of a block touch shared memory without an order, and one writes
	GlobalRace            // two threads touch global memory without an order, and one writes
	NonCoherent           // a load by ld.global.nc of memory that the launch stores
	WarpRace              // two threads of a warp touch shared memory by .volatile accesses without an order, and one writes; before sm_70 they are ordered
	Undeclared            // an access that the launch does not declare: see Region.Declared
	DivergentWarp         // threads of a warp do not meet in an instruction of the whole warp
	DivergentBarrier      // threads of a warp wait at two barriers that are for the whole warp
	BarrierDeadlock       // a barrier, or an instruction of the whole warp, that some threads never reach
	Unsupported           // an instruction with operands that the interpreter does not know
	Trap                  // trap or brkpt
	CallDepth             // calls that are nested too deep
	InstructionLimit      // more instructions than Launch.MaxInstructions
	Assertion             // assert of CUDA C++: a call of __assertfail
	kindCount
)

//nolint:gochecknoglobals // constant table of kinds
var kindNames = [kindCount]string{
	NoFault: "no fault", OutOfBounds: "out of bounds", NotLive: "memory is not live", Misaligned: "misaligned address", ReadOnly: "store to read-only memory",
	Uninitialised: "uninitialised read", AsyncInFlight: "missing wait for cp.async", WgmmaInFlight: "missing wait for wgmma",
	WgmmaFence: "missing wgmma.fence", ProxyFence: "shared memory written without a proxy fence", Unsupported: "not supported", SharedRace: "race in shared memory", GlobalRace: "race in global memory",
	NonCoherent: "non-coherent load of memory that changes", WarpRace: "race in a warp",
	Undeclared: "undeclared access", DivergentWarp: "divergent warp", DivergentBarrier: "divergent barrier", BarrierDeadlock: "barrier that never completes", Trap: "trap",
	CallDepth: "calls nested too deep", InstructionLimit: "too many instructions", Assertion: "assertion failed",
}

// String returns the name of the kind in words.
func (k Kind) String() string {
	if k >= kindCount {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Dim3 is a size or a place in three directions.
type Dim3 struct {
	X uint32 `json:"x"`
	Y uint32 `json:"y"`
	Z uint32 `json:"z"`
}

// String returns the size as CUDA's tools print it.
func (d Dim3) String() string { return fmt.Sprintf("(%d,%d,%d)", d.X, d.Y, d.Z) }

// Place is an instruction that a thread executed.
type Place struct {
	Block       Dim3   `json:"block"`
	Thread      Dim3   `json:"thread"`
	Line        int    `json:"line"`        // in the text of PTX
	File        string `json:"file"`        // of the source in another language, by .loc; "" where the text does not name it
	SourceLine  int    `json:"source_line"` // in that file
	Instruction string `json:"instruction"` // as text
	Write       bool   `json:"write"`       // it stores
}

// String names the line, the thread and the instruction.
func (p Place) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "line %d", p.Line)
	if p.File != "" {
		fmt.Fprintf(&b, " (%s:%d)", p.File, p.SourceLine)
	}
	fmt.Fprintf(&b, ", block %v, thread %v: %s", p.Block, p.Thread, p.Instruction)
	return b.String()
}

// Fault is a mistake of a kernel, at the instruction and the thread that made it.
type Fault struct {
	Place

	Kind    Kind      `json:"kind"`
	Kernel  string    `json:"kernel"`
	Space   ptx.Space `json:"space"`   // of an access
	Address uint64    `json:"address"` // of an access: in its space
	Bytes   int       `json:"bytes"`   // of an access, else 0
	Detail  string    `json:"detail"`  // more about the mistake
	Other   *Place    `json:"other"`   // the other access of a race, or the other thread of a barrier
	Err     error     `json:"err"`     // of Memory

	Assertion *FailedAssertion `json:"assertion"` // of the kind Assertion, else nil
}

// Error names the mistake, the place, the address, and the other place.
func (f *Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ptx: kernel %s: %s: %v", f.Kernel, f.Kind.String(), f.Place)
	if f.Bytes > 0 {
		fmt.Fprintf(&b, ": %d bytes at %#x of .%v", f.Bytes, f.Address, f.Space)
	}
	if f.Detail != "" {
		fmt.Fprintf(&b, ": %s", f.Detail)
	}
	if f.Err != nil {
		fmt.Fprintf(&b, ": %v", f.Err)
	}
	if f.Other != nil {
		fmt.Fprintf(&b, "; the other: %v", *f.Other)
	}
	return b.String()
}

// Unwrap returns the error of Memory.
func (f *Fault) Unwrap() error { return f.Err }

// MarshalJSON implements json.Marshaler: the fields of Place are among the fault's own, and the error is its text.
func (f *Fault) MarshalJSON() ([]byte, error) {
	type plain Fault
	return json.Marshal(struct {
		plain
		Err       any              `json:"err"`
		Assertion *FailedAssertion `json:"assertion"`
	}{plain(*f), jsonform.Error(f.Err), f.Assertion})
}

// Is reports whether target is the kind of the fault, as an error: errors.Is(err, interp.SharedRace).
func (f *Fault) Is(target error) bool {
	kind, ok := target.(Kind)
	return ok && kind == f.Kind
}

// Error makes a kind a target of errors.Is.
func (k Kind) Error() string { return "ptx: " + k.String() }

// ErrNotLive says that memory was freed, or never allocated: a Memory's error wraps it where the address is one of the
// device's.
var ErrNotLive = errors.New("memory is not live")

// ErrStopped says that Launch.Stop ended the run.
var ErrStopped = errors.New("ptx: the run was stopped")

// FailedAssertion is an assert of CUDA C++ that did not hold. A text that cannot be read is "".
type FailedAssertion struct {
	Message  string `json:"message"` // the condition
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}
