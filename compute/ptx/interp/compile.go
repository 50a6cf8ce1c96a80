package interp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// Compile prepares an entry of a module. The error joins a *ptx.CheckError for each mistake in the entry, in the
// functions that it calls and in the module's variables, also for an instruction that Check accepts and that cannot be
// executed. Mistakes in other functions do not count. An instruction that package ptx does not know is no error here: it is
// a fault of the kind Unsupported of the first thread that executes it.
func Compile(m *ptx.Module, entry string) (*Kernel, error) {
	f := m.Function(entry)
	if f == nil || !f.Entry || f.Body == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoKernel, entry)
	}
	c := &compiler{module: m, kernel: &Kernel{
		module: m, name: entry, lockstep: m.Lockstep(), params: map[*ptx.Variable]int{}, shared: map[*ptx.Variable]int{},
	}, functions: map[string]*function{}, unknown: map[ptx.Pos]string{}}
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

// compile compiles all functions, one after the other.
func (c *compiler) compile() {
	c.narrowest = [2]int{widestGranule, widestGranule}
	for _, fn := range c.order {
		fn.start = len(c.kernel.code)
		c.kernel.code = append(c.kernel.code, make([]instruction, len(fn.source.Code().Instructions)+1)...)
	}
	for _, fn := range c.order {
		c.compileFunction(fn)
	}
	c.kernel.entry, c.kernel.granuleBytes = c.order[0], c.narrowest
	if len(c.kernel.code) > 1<<pcBits {
		c.err = errors.Join(c.err, fmt.Errorf("ptx: kernel %s has %d instructions, and the interpreter keeps %d apart", c.kernel.name, len(c.kernel.code), 1<<pcBits))
	}
}

func (c *compiler) compileFunction(fn *function) {
	code := fn.source.Code()
	l := &lowering{compiler: c, fn: fn, slots: map[*ptx.Register]int{}, constants: map[constant]int{}, targets: code.Targets}
	for _, r := range fn.source.Registers {
		if r.Type == ptx.Pred {
			l.slots[r] = fn.predicates
			fn.predicates++
			continue
		}
		l.slots[r] = fn.registers
		fn.registers++
	}
	for n, i := range code.Instructions {
		l.source, l.to, l.inputs = i, &c.kernel.code[fn.start+n], nil
		*l.to = instruction{source: i, fn: fn, guard: none, result: none}
		if i.Guard.Kind == ptx.OperandRegister {
			l.to.guard, l.to.negate = l.slots[i.Guard.Register], i.Guard.Negated
		}
		if message := c.unknown[i.Pos]; message != "" {
			l.refuse(message)
			continue
		}
		l.lower(i)
		if l.to.compute == nil && l.to.run == nil && l.to.flow != branch && c.err == nil {
			l.fail("the interpreter does not know this instruction")
		}
	}
	watchProducts(l)
	l.watchResults(code.Instructions)
	end := &c.kernel.code[fn.start+len(code.Instructions)] // for threads that run past the last instruction
	*end = instruction{flow: leave, run: returnFrom, guard: none, fn: fn, source: &ptx.Instruction{Op: ptx.OpRet}}
}

// watchResults notes whether a result of an atomic operation on global memory is read.
func (c *lowering) watchResults(code []*ptx.Instruction) {
	results := map[int]bool{}
	all := c.kernel.code[c.fn.start:][:len(code)]
	for n := range all {
		if all[n].result != none {
			results[all[n].result] = true
		}
	}
	for n := range all {
		for _, slot := range all[n].reads {
			c.kernel.alone = c.kernel.alone || results[slot]
		}
	}
}

// checked returns the findings of ptx.Check that concern the kernel. Those on instructions that package ptx does not
// know are faults of the threads that execute them.
func (c *compiler) checked() error {
	var reached []*ptx.Function
	for _, fn := range c.order {
		reached = append(reached, fn.source)
	}
	found, ok := ptx.CheckFunctions(c.module, reached...).(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var mistakes, remarks []error
	for _, err := range found.Unwrap() {
		finding, ok := errors.AsType[*ptx.CheckError](err)
		switch {
		case ok && finding.Lacking && finding.Instruction != "" && finding.Pos != (ptx.Pos{}):
			c.unknown[finding.Pos] = finding.Message
		case ok && finding.Lacking && finding.Function == "" && slices.Contains(c.module.Remarks(), finding.Message):
			remarks = append(remarks, err)
		default:
			mistakes = append(mistakes, err)
		}
	}
	if len(mistakes) == 0 {
		return nil
	}
	return errors.Join(append(mistakes, remarks...)...)
}

// refuse makes the current instruction a fault of the threads that execute it.
func (c *lowering) refuse(message string) {
	c.to.flow = leave
	c.to.run = func(w *warp, _ *frame, m uint32) { w.fail(&Fault{Kind: Unsupported, Detail: message}, next(m)) }
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
