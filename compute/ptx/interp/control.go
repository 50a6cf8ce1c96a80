package interp

import (
	"github.com/go-vram/vram/compute/ptx"
)

// maxDepth is how deep calls nest. A GPU's stack is smaller.
const maxDepth = 128

// lowerControl translates branches and ends.
func lowerControl(c *lowering, i *ptx.Instruction) {
	switch i.Op {
	case ptx.OpBra:
		c.to.flow, c.to.target = branch, c.fn.start+c.targets[i.Operands[0].Label]
	case ptx.OpRet:
		c.to.flow = ret
	case ptx.OpExit:
		c.to.flow = exit
	case ptx.OpNanosleep:
		c.in(&i.Operands[0], ptx.B32)
		c.to.flow = rest
	default: // trap and brkpt
		c.to.flow = trap
	}
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
	c.to.flow, c.to.carries = call, carriesCall
	c.to.callee = &callee{
		fn: fn, system: driver, arguments: passings(c, arguments, fn, fn.source.Params, false), results: passings(c, results, fn, fn.source.Results, true),
	}
}

// passings are the places of arguments or results.
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

// call begins a function in threads of a warp.
func (w *warp) call(in *instruction, f *frame, m uint32) {
	if in.callee.system != nil {
		w.callSystem(in, f, m)
		return
	}
	if f.depth+1 >= maxDepth {
		w.fail(&Fault{Kind: CallDepth, Detail: "recursion without an end?"}, next(m))
		return
	}
	g := w.newFrame(in.callee.fn, f)
	g.back, g.by = w.at+1, in
	for rest := m; rest != 0; rest &= rest - 1 {
		n := next(rest)
		w.local[n].grow(g.base + g.fn.localBytes)
		w.local[n].forget(g.base, g.fn.localBytes)
		for _, p := range in.callee.arguments {
			w.local[n].pass(f, g, p, n, w.at, true)
		}
		w.frames[n], w.pc[n] = g, g.fn.start
	}
}

// ret ends a function in threads of a warp, and threads where the function is the entry.
func (w *warp) ret(f *frame, m uint32) {
	if f.parent == nil {
		w.exit(m)
		return
	}
	f.parent.written(f.by, m)
	for rest := m; rest != 0; rest &= rest - 1 {
		n := next(rest)
		for _, p := range f.by.callee.results {
			w.local[n].pass(f.parent, f, p, n, f.back-1, false)
		}
		w.frames[n], w.pc[n] = f.parent, f.back
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
