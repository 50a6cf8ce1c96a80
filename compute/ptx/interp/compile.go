package interp

import (
	"errors"
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/ptx"
)

// compiler makes a Kernel. It has a method for each family of instructions, and decides once all that no launch changes.
type compiler struct {
	module    *ptx.Module
	kernel    *Kernel
	functions map[string]*function
	order     []*function
	err       error

	fn        *function // the current one
	slots     map[*ptx.Register]int
	constants map[constant]int
	source    *ptx.Instruction
	to        *instruction
	inputs    []int // slots of the current instruction's operands, constants included
	targets   map[*ptx.Label]int
	narrowest [2]int // of accesses
}

// fail adds a mistake at the current instruction.
func (c *compiler) fail(format string, args ...any) {
	e := &ptx.CheckError{Pos: c.source.Pos, Function: c.fn.name, Instruction: c.source.String(), Message: fmt.Sprintf(format, args...)}
	if l := c.source.Source; l != nil {
		e.File, e.Line = c.module.File(l.File), l.Line
	}
	c.err = errors.Join(c.err, e)
}

// compile compiles all functions, one behind the other.
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
	c.fn, c.slots, c.constants = fn, map[*ptx.Register]int{}, map[constant]int{}
	code := fn.source.Code()
	c.targets = code.Targets
	for _, r := range fn.source.Registers {
		if r.Type == ptx.Pred {
			c.slots[r] = fn.predicates
			fn.predicates++
			continue
		}
		c.slots[r] = fn.registers
		fn.registers++
	}
	for n, i := range code.Instructions {
		c.source, c.to = i, &c.kernel.code[fn.start+n]
		*c.to = instruction{source: i, fn: fn, guard: none}
		if i.Guard.Kind == ptx.OperandRegister {
			c.to.guard, c.to.negate = c.slots[i.Guard.Register], i.Guard.Negated
		}
		c.inputs = nil
		c.compileInstruction(i)
		c.undefinedRule(i)
		if c.to.run == nil && c.to.flow == plain && c.err == nil {
			c.fail("the interpreter does not know this instruction")
		}
	}
	if len(fn.products) > 0 {
		c.touches()
	}
	end := &c.kernel.code[fn.start+len(code.Instructions)] // for threads that run past the last instruction
	*end = instruction{flow: ret, guard: none, fn: fn, source: &ptx.Instruction{Op: ptx.OpRet}}
}

// compileInstruction chooses the action of an instruction.
func (c *compiler) compileInstruction(i *ptx.Instruction) {
	if i.Has(ptx.ModCC) {
		c.carry(i)
		return
	}
	if compile := c.byOpcode(i.Op); compile != nil {
		compile(i)
	}
}

// byOpcode is the compiler of an opcode, or nil.
func (c *compiler) byOpcode(op ptx.Opcode) func(*ptx.Instruction) {
	switch op {
	case ptx.OpAdd, ptx.OpSub, ptx.OpMul, ptx.OpMad, ptx.OpFma, ptx.OpDiv, ptx.OpRem, ptx.OpMin, ptx.OpMax, ptx.OpAbs, ptx.OpNeg, ptx.OpSad,
		ptx.OpSqrt, ptx.OpRcp, ptx.OpRsqrt, ptx.OpSin, ptx.OpCos, ptx.OpLg2, ptx.OpEx2, ptx.OpTanh, ptx.OpCopysign, ptx.OpDp4a:
		return c.arithmetic
	case ptx.OpAddc, ptx.OpSubc, ptx.OpMadc:
		return c.carry
	case ptx.OpAnd, ptx.OpOr, ptx.OpXor, ptx.OpNot:
		return c.logic
	case ptx.OpCnot, ptx.OpShl, ptx.OpShr, ptx.OpShf, ptx.OpBfe, ptx.OpBfi, ptx.OpBfind, ptx.OpBrev, ptx.OpClz, ptx.OpPopc, ptx.OpPrmt, ptx.OpLop3,
		ptx.OpSlct:
		return c.bitwise
	case ptx.OpSelp:
		return c.selp
	case ptx.OpSetp, ptx.OpSet, ptx.OpTestp:
		return c.comparison
	case ptx.OpMov, ptx.OpCvta, ptx.OpIsspacep, ptx.OpCvt:
		return c.move
	case ptx.OpLd, ptx.OpSt, ptx.OpAtom, ptx.OpRed, ptx.OpLdmatrix, ptx.OpPrefetch, ptx.OpPrefetchu, ptx.OpCreatepolicy:
		return c.access
	case ptx.OpCpAsync, ptx.OpCpAsyncCommitGroup, ptx.OpCpAsyncWaitGroup, ptx.OpCpAsyncWaitAll, ptx.OpMembar, ptx.OpFence,
		ptx.OpFenceProxy:
		return c.ordering
	case ptx.OpShflSync, ptx.OpVoteSync, ptx.OpMatch, ptx.OpReduxSync, ptx.OpBarWarpSync, ptx.OpActivemask, ptx.OpMma:
		return c.warpWide
	case ptx.OpSetmaxnreg, ptx.OpWgmmaFence, ptx.OpWgmmaCommitGroup, ptx.OpWgmmaWaitGroup, ptx.OpWgmmaMmaAsync:
		return c.wgmma
	case ptx.OpMbarrierInit, ptx.OpMbarrierInval, ptx.OpMbarrierArrive, ptx.OpMbarrierArriveDrop, ptx.OpMbarrierExpectTx, ptx.OpMbarrierCompleteTx,
		ptx.OpMbarrierTestWait, ptx.OpMbarrierTryWait, ptx.OpMbarrierPendingCount, ptx.OpCpAsyncMbarrierArrive:
		return c.mbarrier
	case ptx.OpWmmaLoadA, ptx.OpWmmaLoadB, ptx.OpWmmaLoadC, ptx.OpWmmaMma, ptx.OpWmmaStoreD:
		return c.wmma
	case ptx.OpBarSync, ptx.OpBarArrive, ptx.OpBarRed, ptx.OpBarrierSync, ptx.OpBarrierArrive, ptx.OpBarrierRed:
		return c.barrier
	case ptx.OpBra, ptx.OpCall, ptx.OpRet, ptx.OpExit, ptx.OpTrap, ptx.OpBrkpt, ptx.OpNanosleep:
		return c.control
	case ptx.UnknownOp:
	}
	return nil
}

// constantBits are the bits of a constant as a value of a type.
func constantBits(o *ptx.Operand, t ptx.Type) uint64 {
	switch {
	case o.Kind == ptx.OperandFloat64 && t.Bits() == 32:
		return uint64(math.Float32bits(float32(o.Float())))
	case o.Kind == ptx.OperandFloat32 && t.Bits() == 64:
		return math.Float64bits(o.Float())
	}
	return o.Value & mask(t.Bits())
}

// mask has so many ones.
func mask(bits int) uint64 { return 1<<bits - 1 }

// constant is the slot of a constant.
func (c *compiler) constant(k constant) int {
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

// in is the slot of an operand that is read as a type.
func (c *compiler) in(o *ptx.Operand, t ptx.Type) int {
	slot := c.input(o, t)
	c.inputs = append(c.inputs, slot)
	return slot
}

func (c *compiler) input(o *ptx.Operand, t ptx.Type) int {
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

// address is a variable's: in its own space, or the generic one.
func (c *compiler) address(v *ptx.Variable, offset int64, generic bool) constant {
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

// window is the first generic address of a space.
func window(s ptx.Space) uint64 {
	switch s {
	case ptx.Shared:
		return sharedWindow
	case ptx.Local:
		return localWindow
	case ptx.Param:
		return paramWindow
	case ptx.Generic, ptx.Global, ptx.Const:
	}
	return 0
}

// predIn is the slot of a predicate that is read, and whether it is negated. A constant has the slot none, and is true where
// negated.
func (c *compiler) predIn(o *ptx.Operand) (slot int, negated bool) {
	if slot, negated = c.predicate(o); slot != none {
		c.to.readPreds = append(c.to.readPreds, slot)
	}
	return slot, negated
}

func (c *compiler) predicate(o *ptx.Operand) (slot int, negated bool) {
	if o.Kind == ptx.OperandInteger {
		return none, (o.Value != 0) != o.Negated
	}
	return c.slots[o.Register], o.Negated
}

// predMask reads a predicate of predIn.
func (f *frame) predMask(slot int, negated bool) uint32 {
	var p uint32
	if slot != none {
		p = f.preds[slot]
	}
	if negated {
		return ^p
	}
	return p
}

// out is the slot of a result; that of a sink is one that nobody reads.
func (c *compiler) out(o *ptx.Operand) int {
	if o.Kind != ptx.OperandRegister {
		slot := c.fn.registers
		c.fn.registers++
		return slot
	}
	slot := c.slots[o.Register]
	c.to.writes = append(c.to.writes, slot)
	return slot
}

// predOut is the slot of a predicate that is a result.
func (c *compiler) predOut(o *ptx.Operand) int {
	if o.Kind != ptx.OperandRegister {
		slot := c.fn.predicates
		c.fn.predicates++
		return slot
	}
	slot := c.slots[o.Register]
	c.to.writePreds = append(c.to.writePreds, slot)
	return slot
}

// setPred writes a predicate in the threads of m.
func (f *frame) setPred(slot int, value, m uint32) { f.preds[slot] = f.preds[slot]&^m | value&m }
