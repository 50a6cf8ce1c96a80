package interp

import (
	"errors"
	"sync/atomic"

	"github.com/go-vram/vram/compute/ptx"
)

// Kernel is an entry that can be executed. It does not change: several goroutines may run it at once.
type Kernel struct {
	module *ptx.Module
	name   string
	entry  *function
	code   []instruction

	paramBytes        int
	params            map[*ptx.Variable]int // offsets
	maxThreads        int                   // of a block; 0 without a limit
	staticSharedBytes int
	shared            map[*ptx.Variable]int // offsets
	globals           []*ptx.Variable       // of the module: .global and .const
	granuleBytes      [2]int                // the smallest access to shared and to global memory
	fences            bool                  // some instruction orders memory between threads without a barrier
	constants         bool                  // some instruction is ld.global.nc
	lockstep          bool                  // the threads of a warp run in lockstep
	alone             bool                  // blocks may pass values to each other: they run one after the other
	met               atomic.Bool           // blocks of an earlier launch met in memory
	swaps             bool                  // some instruction is atom.cas
	spares            spares                // memory of earlier launches
	wgmma             bool                  // some instruction is one of a warpgroup
}

// Name returns the kernel's name.
func (k *Kernel) Name() string {
	if k == nil {
		return ""
	}
	return k.name
}

// ParamBytes returns the size of Launch.Params.
func (k *Kernel) ParamBytes() int {
	if k == nil {
		return 0
	}
	return k.paramBytes
}

// SharedBytes returns the size of the kernel's static shared memory.
func (k *Kernel) SharedBytes() int {
	if k == nil {
		return 0
	}
	return k.staticSharedBytes
}

// ErrNoKernel says that a module has no .entry of that name.
var ErrNoKernel = errors.New("ptx: no such kernel")

func (k *Kernel) place(pc int, at, thread Dim3) Place {
	in := &k.code[pc]
	p := Place{Block: at, Thread: thread, Line: in.source.Pos.Line, Instruction: in.source.String(), Write: writes(in.source.Op)}
	if l := in.source.Source; l != nil {
		p.File, p.SourceLine = k.module.File(l.File), l.Line
	}
	return p
}

// writes reports whether an opcode stores.
func writes(op ptx.Opcode) bool {
	return op == ptx.OpSt || op == ptx.OpAtom || op == ptx.OpRed || op == ptx.OpCpAsync
}
