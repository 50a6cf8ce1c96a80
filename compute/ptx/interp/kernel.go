package interp

import (
	"errors"
	"fmt"

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
	swaps             bool                  // some instruction is atom.cas
	wgmma             bool                  // some instruction is one of a warpgroup
	touches           [][]int               // by instruction: the registers of products that it reads or writes; nil in a kernel without products
}

// Name is the kernel's name.
func (k *Kernel) Name() string {
	if k == nil {
		return ""
	}
	return k.name
}

// ParamBytes is the size of Launch.Params.
func (k *Kernel) ParamBytes() int {
	if k == nil {
		return 0
	}
	return k.paramBytes
}

// SharedBytes is the size of the kernel's static shared memory.
func (k *Kernel) SharedBytes() int {
	if k == nil {
		return 0
	}
	return k.staticSharedBytes
}

// ErrNoKernel says that a module has no .entry of that name.
var ErrNoKernel = errors.New("ptx: no such kernel")

// Compile prepares an entry of a module. The error joins a *ptx.CheckError for each mistake in the entry, in the functions that it
// calls and in the module's variables, also for an instruction that Check accepts and that cannot be executed. Mistakes in other
// functions do not count.
func Compile(m *ptx.Module, entry string) (*Kernel, error) {
	f := m.Function(entry)
	if f == nil || !f.Entry || f.Body == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoKernel, entry)
	}
	c := &compiler{module: m, kernel: &Kernel{
		module: m, name: entry, params: map[*ptx.Variable]int{}, shared: map[*ptx.Variable]int{},
	}, functions: map[string]*function{}}
	c.reach(f)
	if err := c.checked(); err != nil {
		return nil, err
	}
	c.layOut(f)
	c.compile()
	if c.err != nil {
		return nil, c.err
	}
	return c.kernel, nil
}

// checked are the findings of ptx.Check that concern the kernel.
func (c *compiler) checked() error {
	var reached []*ptx.Function
	for _, fn := range c.order {
		reached = append(reached, fn.source)
	}
	return ptx.CheckFunctions(c.module, reached...)
}

// reach lists the functions that a kernel calls, the kernel itself first.
func (c *compiler) reach(f *ptx.Function) {
	if c.functions[f.Name] != nil {
		return
	}
	fn := &function{name: f.Name, entry: f.Entry, source: f, locals: map[*ptx.Variable]int{}}
	c.functions[f.Name] = fn
	c.order = append(c.order, fn)
	for _, i := range f.Code().Instructions {
		if target, _, _ := callOperands(i); target != nil && target.Kind == ptx.OperandFunction {
			if g := c.module.Function(target.Name); g != nil {
				c.reach(g)
			}
		}
	}
}

// callOperands splits the operands of a call: the function, the arguments and the results, each nil where the text has none.
func callOperands(i *ptx.Instruction) (target, arguments, results *ptx.Operand) {
	if i.Op != ptx.OpCall {
		return nil, nil, nil
	}
	rest := i.Operands
	if len(rest) > 0 && rest[0].Kind == ptx.OperandList {
		results, rest = &rest[0], rest[1:]
	}
	if len(rest) > 0 {
		target, rest = &rest[0], rest[1:]
	}
	if len(rest) > 0 {
		arguments = &rest[0]
	}
	return target, arguments, results
}
