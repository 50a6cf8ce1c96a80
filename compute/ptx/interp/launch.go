package interp

import (
	"errors"
	"fmt"
	"io"
)

// Launch is one execution of a kernel.
type Launch struct {
	Grid, Block Dim3
	SharedBytes int    // dynamic shared memory of a block
	Params      []byte // as in a C struct: each at a multiple of its own alignment
	Memory      Memory // global memory; nil where the kernel touches none
	// Globals are the addresses of the module's .global and .const variables in Memory. A variable that is not named
	// has memory of this launch's own, with the value of its initialiser.
	Globals map[string]uint64

	// Tensors reads an encoded tensor map, of which bulk copies are given the address; it reports whether the bytes are one. nil:
	// a bulk copy of a tensor is a fault.
	Tensors func(encoded []byte) (Tensor, bool)

	Ignore          []Kind      // mistakes that are not looked for, of the kinds from Uninitialised to Undeclared
	MaxInstructions int64       // that one warp executes; 0: DefaultMaxInstructions
	Stop            func() bool // asked now and then; true ends the run with ErrStopped
	// Cooperative launches the grid as cuLaunchCooperativeKernel does: its blocks take turns, so that they may wait for
	// each other (grid.sync of cooperative groups), and %envreg1 and %envreg2 are the address of the grid's workspace.
	// Otherwise those are 0, and blocks run one after the other. ErrLaunch if the blocks are more than an H200 runs at
	// once.
	Cooperative bool
	// Strict finds more races: a .volatile access counts as a plain one, which orders nothing, and an atomic access
	// needs a later fence to order the block's accesses after its next barrier. Without Strict two .volatile accesses
	// are no race, as PTX has it, and a barrier stands for that fence, as GPUs execute it.
	Strict bool
	// Output is given the text of each printf of the kernel, up to 1 MiB in all; nil: the text is dropped. Its error ends the run.
	Output io.Writer
	// Goroutines execute the blocks at once, on which neither the results nor the fault depend: 0 means GOMAXPROCS for
	// launches that are worth it, and 1 the caller's alone. The functions of the launch are called by one of them at a time.
	Goroutines int
	// First and Blocks choose blocks of the grid, by number: X varies fastest. Blocks 0 means all from First on. A
	// caller that runs parts of one grid at once does not see races between the parts, and its atomics must not meet.
	First, Blocks uint64
}

// DefaultMaxInstructions ends an endless loop after a few seconds.
const DefaultMaxInstructions = 1 << 26

// Memory is the global memory of a launch.
type Memory interface {
	// Range finds the memory around [address, address+bytes). The error is wrapped in the Fault; where it wraps
	// ErrNotLive the fault is NotLive, else OutOfBounds. A range that was found is used until the launch ends.
	Range(address uint64, bytes int, write bool) (Region, error)
}

// Region is memory of one owner.
type Region struct {
	Start       uint64
	Bytes       []byte
	Initialised []uint64 // a bit for each byte that was written; nil: all were. Stores set bits
	// Declared are the accesses that the launch declares; nil: any. A store outside them is a fault, and so is a load, except
	// of bytes that the launch itself has written.
	Declared []Declared
	Owner    fmt.Stringer // for faults; may be nil
}

// Declared is a part of a region that the kernel reads, or that it writes. A part that it reads and writes is there twice.
type Declared struct {
	Start, Bytes uint64
	Write        bool
}

// The limits of CUDA.
const (
	maxBlockThreads = 1024
	maxBlockDepth   = 64
	maxGridWidth    = 1<<31 - 1
	maxGridHeight   = 1<<16 - 1
	maxSharedBytes  = 227 << 10
)

// ErrLaunch says that a kernel cannot be launched so.
var ErrLaunch = errors.New("ptx: launch")

// count returns the number of blocks of the grid.
func (d Dim3) count() uint64 { return uint64(d.X) * uint64(d.Y) * uint64(d.Z) }

// at returns the n-th place in a size: X varies fastest.
func (d Dim3) at(n uint64) Dim3 {
	x, y := uint64(d.X), uint64(d.Y)
	return Dim3{uint32(n % x), uint32(n / x % y), uint32(n / (x * y))} //nolint:gosec // below the sizes
}

// Bytes is memory of a program's own, for tests of kernels without a device: Range finds the slices by address.
type Bytes map[uint64][]byte

// Range finds the slice around the addresses.
func (m Bytes) Range(address uint64, bytes int, _ bool) (Region, error) {
	for start, b := range m {
		if address >= start && address-start < uint64(len(b)) {
			if uint64(len(b))-(address-start) < uint64(bytes) { //nolint:gosec // an access has at most 16 bytes
				return Region{}, fmt.Errorf("the access ends %d bytes past the end of the %d bytes at %#x",
					address-start+uint64(bytes)-uint64(len(b)), len(b), start) //nolint:gosec // likewise
			}
			return Region{Start: start, Bytes: b}, nil
		}
	}
	return Region{}, m.nearest(address)
}

// nearest names the slice that ends closest below an address.
func (m Bytes) nearest(address uint64) error {
	var end, start uint64
	for s, b := range m {
		if e := s + uint64(len(b)); e <= address && e > end {
			end, start = e, s
		}
	}
	if end == 0 {
		return errors.New("no memory is there")
	}
	return fmt.Errorf("no memory is there: %d bytes past the end of the %d bytes at %#x", address-end, end-start, start)
}
