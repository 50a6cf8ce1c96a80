package interp

import (
	"fmt"
	"math/bits"
	"strconv"

	"github.com/go-vram/vram/compute/ptx"
)

// maxDepth is how deep calls nest. A GPU's stack is smaller.
const maxDepth = 128

// lowerBranch translates bra.
func lowerBranch(c *lowering, i *ptx.Instruction) {
	c.to.flow, c.to.target = branch, c.fn.start+c.targets[i.Operands[0].Label]
}

// lowerControl translates the ends of functions and threads.
func lowerControl(c *lowering, i *ptx.Instruction) {
	c.to.flow = leave
	switch i.Op {
	case ptx.OpRet:
		c.to.run = returnFrom
	case ptx.OpExit:
		c.to.run = func(w *warp, _ *frame, m uint32) { exitThreads(w, m) }
	case ptx.OpNanosleep:
		c.in(&i.Operands[0], ptx.B32)
		c.to.run = func(w *warp, _ *frame, _ uint32) { w.turn() }
	default: // trap and brkpt
		in := c.to
		c.to.run = func(w *warp, f *frame, m uint32) {
			w.fail(&Fault{Kind: Trap, Detail: trapped(w, in, f, next(m))}, next(m))
		}
	}
}

// exitThreads ends threads, and releases threads that waited for them.
func exitThreads(w *warp, m uint32) {
	for rest := m; rest != 0 && w.block.asyncs > 0; rest &= rest - 1 {
		w.copies.deliver(next(rest), 0, true)
	}
	if w.products != nil && m == w.live {
		w.products.commit()
		w.products.deliver(0)
	}
	w.live &^= m
	w.block.live -= bits.OnesCount32(m)
	meetAgain(w)
	w.block.completeBarriers()
}

// lowerCall translates call.
func lowerCall(c *lowering, i *ptx.Instruction) {
	target, arguments, results := callOperands(i)
	fn := c.functions[target.Name]
	if fn == nil {
		c.fail("function %s is not declared", target.Name)
		return
	}
	driver := systemOf(target.Name)
	switch {
	case fn.source.Body != nil:
		driver = nil
	case driver == nil:
		c.fail("function %s has no body", target.Name)
		return
	case !driver.declaredAs(fn.source):
		c.fail("function %s is not declared as the driver has it", target.Name)
		return
	}
	c.to.flow, c.to.carries = leave, carriesCall
	c.to.callee = &callee{
		fn: fn, system: driver, arguments: passings(c, arguments, fn, fn.source.Params, false), results: passings(c, results, fn, fn.source.Results, true),
	}
	in := c.to
	if c.to.run = func(w *warp, f *frame, m uint32) { callFunction(w, in, f, m) }; driver != nil {
		c.kernel.alone = c.kernel.alone || target.Name == "vprintf"
		c.to.run = func(w *warp, f *frame, m uint32) { callSystem(w, in, f, m) }
	}
}

// systemOf returns the system function of a name, or nil.
func systemOf(name string) *system {
	const word, pointer = 4, 8
	switch name {
	case "__assertfail": // message, file, line, function, and the size of a character
		return &system{[]int{pointer, pointer, word, pointer, pointer}, nil, assertFail}
	case "vprintf": // format and arguments
		return &system{[]int{pointer, pointer}, []int{word}, vprintf}
	}
	return nil
}

// declaredAs reports whether a declaration has the function's parameters and results.
func (s *system) declaredAs(f *ptx.Function) bool {
	fits := func(variables []*ptx.Variable, sizes []int) bool {
		if len(variables) != len(sizes) {
			return false
		}
		for n, v := range variables {
			if v.Bytes() != sizes[n] {
				return false
			}
		}
		return true
	}
	return fits(f.Params, s.params) && fits(f.Results, s.results)
}

// passings returns the places of arguments or results.
func passings(c *lowering, o *ptx.Operand, fn *function, formal []*ptx.Variable, result bool) (all []passing) {
	if o == nil {
		return nil
	}
	for n := range o.Elements {
		p := passing{slot: none, formal: fn.locals[formal[n]], bytes: formal[n].Bytes()}
		switch e := &o.Elements[n]; {
		case e.Kind == ptx.OperandVariable:
			p.local = c.fn.locals[e.Variable]
		case result:
			p.slot = c.out(e)
		default:
			p.slot = c.in(e, formal[n].Type)
		}
		all = append(all, p)
	}
	return all
}

// callFunction starts a function in threads of a warp.
func callFunction(w *warp, in *instruction, f *frame, m uint32) {
	if f.depth+1 >= maxDepth {
		w.fail(&Fault{Kind: CallDepth, Detail: "recursion without an end?"}, next(m))
		return
	}
	g := newFrame(&w.site, in.callee.fn, f)
	g.back, g.by = w.at+1, in
	for rest := m; rest != 0; rest &= rest - 1 {
		n := next(rest)
		w.memory.local[n].grow(g.base + g.fn.localBytes)
		w.memory.local[n].forget(g.base, g.fn.localBytes)
		for _, p := range in.callee.arguments {
			w.memory.local[n].pass(f, g, p, n, w.at, true)
		}
		w.frames[n], w.pc[n] = g, g.fn.start
	}
}

// returnFrom ends a function in threads of a warp, and threads where the function is the entry.
func returnFrom(w *warp, f *frame, m uint32) {
	if f.parent == nil {
		exitThreads(w, m)
		return
	}
	f.parent.written(f.by, m)
	for rest := m; rest != 0; rest &= rest - 1 {
		n := next(rest)
		for _, p := range f.by.callee.results {
			w.memory.local[n].pass(f.parent, f, p, n, f.back-1, false)
		}
		w.frames[n], w.pc[n] = f.parent, f.back
	}
}

// callSystem calls a function of the driver in each thread.
func callSystem(w *warp, in *instruction, f *frame, m uint32) {
	f.written(in, m)
	for ; m != 0; m &= m - 1 {
		n := next(m)
		w.memory.local[n].grow(f.base + f.fn.localBytes)
		if !in.callee.system.run(w, f, in, n) {
			return
		}
	}
}

// pass copies an argument to the function, or a result to the caller.
func (l *localMemory) pass(caller, fn *frame, p passing, thread, at int, argument bool) {
	formal := fn.base + p.formal
	switch {
	case p.slot == none && argument:
		l.copy(formal, caller.base+p.local, p.bytes)
	case p.slot == none:
		l.copy(caller.base+p.local, formal, p.bytes)
	case argument:
		store(l.bytes[formal:], p.bytes, caller.regs[p.slot][thread])
		l.mark(formal, p.bytes)
		l.lose(formal, p.bytes, caller.undefinedBits(p.slot, thread))
	default:
		caller.regs[p.slot][thread] = load(l.bytes[formal:], p.bytes)
		if l.holes(formal, p.bytes) {
			caller.lose(p.slot, thread, l.undefinedBits(formal, p.bytes), causeInstruction|cause(at)) //nolint:gosec // not negative
		}
	}
}

// trapped tells why a thread came to a trap: the numbers that the comparison just before it has compared, if that is its guard.
func trapped(w *warp, in *instruction, f *frame, thread int) string {
	at := w.at - in.fn.start
	if at < 1 || in.guard == none {
		return ""
	}
	for _, target := range in.fn.source.Code().Targets {
		if target == at {
			return "" // a branch leads here, past the comparison
		}
	}
	before := &w.block.kernel.code[w.at-1]
	i := before.source
	if i.Op != ptx.OpSetp || len(before.writePreds) != 1 || before.writePreds[0] != in.guard || len(i.Operands) != 3 { //nolint:mnd // result and operands
		return ""
	}
	t := i.Type(0)
	if !t.IsInteger() {
		return ""
	}
	registers, numbers := before.reads, [2]string{}
	for n := range numbers {
		switch o := &i.Operands[n+1]; o.Kind {
		case ptx.OperandRegister:
			if len(registers) == 0 {
				return ""
			}
			numbers[n], registers = integerText(f.regs[registers[0]][thread], t), registers[1:]
		case ptx.OperandInteger:
			numbers[n] = integerText(o.Value, t)
		default:
			return ""
		}
	}
	return fmt.Sprintf("%v compared %s with %s", i, numbers[0], numbers[1])
}

// integerText returns an integer of a type as text. One that is greater than the signed numbers is written as a negative
// one, too, which it may have been.
func integerText(bits uint64, t ptx.Type) string {
	bits &= mask(t.Bits())
	signed := int64(bits<<(64-t.Bits())) >> (64 - t.Bits()) //nolint:gosec // in two's complement
	if signed >= 0 {
		return strconv.FormatUint(bits, 10)
	}
	if t.Class() == ptx.Unsigned {
		return fmt.Sprintf("%d (%d)", bits, signed)
	}
	return strconv.FormatInt(signed, 10)
}
