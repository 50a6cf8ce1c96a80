package interp

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/compute/ptx"
)

// compiler makes a Kernel, and decides all that no launch changes.
type compiler struct {
	module    *ptx.Module
	kernel    *Kernel
	functions map[string]*function
	order     []*function
	unknown   map[ptx.Pos]string // why the interpreter does not execute the instruction at a place
	err       error
	narrowest [2]int // bytes of accesses to shared and to global memory
}

// lowering translates one instruction: it gives operands their slots and fills in the instruction that a warp executes.
// The families of instructions are functions of it, registered in families.
type lowering struct {
	*compiler

	fn        *function
	slots     map[*ptx.Register]int
	constants map[constant]int
	targets   map[*ptx.Label]int
	products  []*productForm // of the function

	source *ptx.Instruction
	to     *instruction
	inputs []int // slots of the operands that are read, constants included
}

// fail adds a mistake at the current instruction.
func (c *lowering) fail(format string, args ...any) {
	e := &ptx.CheckError{Pos: c.source.Pos, Function: c.fn.name, Instruction: c.source.String(), Message: fmt.Sprintf(format, args...)}
	if l := c.source.Source; l != nil {
		e.File, e.Line = c.module.File(l.File), l.Line
	}
	c.err = errors.Join(c.err, e)
}

// constant returns the slot of a constant.
func (c *lowering) constant(k constant) int {
	if slot, ok := c.constants[k]; ok {
		return slot
	}
	slot := c.fn.registers
	c.fn.registers++
	c.constants[k] = slot
	k.slot = slot
	c.fn.constants = append(c.fn.constants, k)
	return slot
}

// in returns the slot of an operand that is read as a type.
func (c *lowering) in(o *ptx.Operand, t ptx.Type) int {
	slot := c.input(o, t)
	c.inputs = append(c.inputs, slot)
	return slot
}

func (c *lowering) input(o *ptx.Operand, t ptx.Type) int {
	switch o.Kind {
	case ptx.OperandRegister:
		slot := c.slots[o.Register]
		c.to.reads = append(c.to.reads, slot)
		return slot
	case ptx.OperandSpecial:
		if o.Special == ptx.WarpSize {
			return c.constant(constant{value: warpThreads})
		}
		return c.constant(constant{special: o.Special})
	case ptx.OperandVariable:
		return c.constant(c.address(o.Variable, o.Offset, o.Generic))
	case ptx.OperandInteger, ptx.OperandFloat32, ptx.OperandFloat64:
		return c.constant(constant{value: constantBits(o, t)})
	default:
		c.fail("operand %v is not supported", *o)
		return c.constant(constant{})
	}
}

// address returns the address of a variable in its own space, or the generic one.
func (c *lowering) address(v *ptx.Variable, offset int64, generic bool) constant {
	k := constant{value: uint64(offset)} //nolint:gosec // in two's complement
	local, isLocal := c.fn.locals[v]
	param, isParam := c.kernel.params[v]
	shared, isShared := c.kernel.shared[v]
	switch {
	case isLocal:
		k.local = true
		k.value += uint64(local) //nolint:gosec // an offset
	case isParam:
		k.value += uint64(param) //nolint:gosec // an offset
	case isShared:
		k.value += uint64(shared) //nolint:gosec // an offset
	case v.Space == ptx.Shared:
		k.dynamic = true
	case v.Space == ptx.Global || v.Space == ptx.Const:
		k.global = v
	default:
		c.fail("the address of %s is not supported", v.Name)
	}
	if generic {
		k.value += window(v.Space)
	}
	return k
}

// predIn returns the slot of a predicate that is read, and whether it is negated. A constant has the slot none, and is true where
// negated.
func (c *lowering) predIn(o *ptx.Operand) (slot int, negated bool) {
	if slot, negated = c.predicate(o); slot != none {
		c.to.readPreds = append(c.to.readPreds, slot)
	}
	return slot, negated
}

func (c *lowering) predicate(o *ptx.Operand) (slot int, negated bool) {
	if o.Kind == ptx.OperandInteger {
		return none, (o.Value != 0) != o.Negated
	}
	return c.slots[o.Register], o.Negated
}

// out returns the slot of a result; a sink gets a slot that nothing reads.
func (c *lowering) out(o *ptx.Operand) int {
	if o.Kind != ptx.OperandRegister {
		slot := c.fn.registers
		c.fn.registers++
		return slot
	}
	slot := c.slots[o.Register]
	c.to.writes = append(c.to.writes, slot)
	return slot
}

// predOut returns the slot of a predicate that is a result.
func (c *lowering) predOut(o *ptx.Operand) int {
	if o.Kind != ptx.OperandRegister {
		slot := c.fn.predicates
		c.fn.predicates++
		return slot
	}
	slot := c.slots[o.Register]
	c.to.writePreds = append(c.to.writePreds, slot)
	return slot
}

// vector returns the slots of a value or of the elements of a vector.
func (c *lowering) vector(o *ptx.Operand, slot func(o *ptx.Operand) int) (slots []int) {
	if o.Kind != ptx.OperandVector {
		return []int{slot(o)}
	}
	for n := range o.Elements {
		slots = append(slots, slot(&o.Elements[n]))
	}
	return slots
}

// vectorIn returns the slots of a value or a vector that is read, of elements of a type.
func (c *lowering) vectorIn(o *ptx.Operand, t ptx.Type) []int {
	return c.vector(o, func(o *ptx.Operand) int { return c.in(o, t) })
}

// pointer is a compiled address.
type pointer struct {
	space  ptx.Space
	base   int // slot
	offset uint64
	ones   uint64 // of the base's width: a sum wraps there
}

// of returns the address in a thread.
func (p *pointer) of(f *frame, thread int) uint64 {
	return (f.regs[p.base][thread] + p.offset) & p.ones
}

// pointer compiles an address operand.
func (c *lowering) pointer(o *ptx.Operand, space ptx.Space) pointer {
	p := pointer{space: space, offset: uint64(o.Offset), ones: mask(64)} //nolint:gosec,mnd // in two's complement; an address
	switch {
	case o.Register != nil:
		p.base = c.in(&ptx.Operand{Kind: ptx.OperandRegister, Register: o.Register}, ptx.B64)
		p.ones = mask(o.Register.Type.Bits())
	case o.Variable != nil:
		k := c.address(o.Variable, 0, false)
		if p.space == ptx.Generic {
			k.value += window(o.Variable.Space)
		}
		if _, isLocal := c.fn.locals[o.Variable]; isLocal && space == ptx.Param {
			p.space = ptx.Local // a parameter of a call is on the stack
		}
		p.base = c.constant(k)
	default:
		p.base = c.constant(constant{})
	}
	return p
}

// narrow notes the size of an access, for the cells of its memory.
func (c *lowering) narrow(space ptx.Space, bytes int) {
	if space == ptx.Shared || space == ptx.Generic {
		c.narrowest[0] = min(c.narrowest[0], bytes)
	}
	if space == ptx.Global || space == ptx.Generic || space == ptx.Const {
		c.narrowest[1] = min(c.narrowest[1], bytes)
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
