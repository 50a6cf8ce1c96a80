package interp

import (
	"fmt"

	"github.com/go-vram/vram/ptx"
)

// A register that nobody wrote is no mistake by itself: compilers move such registers, shuffle them and select them away. So each
// thread's copy of a register keeps which of its bits are undefined. Instructions on registers alone, shuffles, and the memory that is
// one thread's own (.local, and the parameters of functions) pass undefined bits on. A use that depends on them is a fault: an address, a
// store to memory that others see, the condition of a branch or of a predicated instruction, and everything else that reads them.

// undefined is which bits of a frame's registers are undefined, where defined says that there are some. Frames without such
// values have none.
type undefined struct {
	bits       frame // its registers are the undefined bits; those of a thread that has all bits defined mean nothing
	causes     [][warpThreads]cause
	predCauses [][warpThreads]cause
}

// cause is why a register is undefined: causeRegister and a slot, causePredicate and a slot, or causeInstruction and its number.
// 0 is: nobody wrote it.
type cause uint32

const (
	causeRegister cause = (iota + 1) << 30
	causePredicate
	causeInstruction
	causeNumber cause = 1<<30 - 1
)

// carrying passes undefined bits of operands on to the results, before the instruction is executed. It reports false after a fault.
type carrying func(w *warp, f *frame, in *instruction, m uint32) bool

// ready reports whether everything that the instruction reads is defined.
func (f *frame) ready(in *instruction, m uint32) bool {
	for _, s := range in.reads {
		if m&^f.defined[s] != 0 {
			return false
		}
	}
	for _, p := range in.readPreds {
		if m&^f.predDefined[p] != 0 {
			return false
		}
	}
	return true
}

// carry is for an instruction that is not ready: it passes undefined bits on, or reports the fault.
func (w *warp) carry(f *frame, in *instruction, m uint32) bool {
	if w.block.run.ignored[Uninitialised] {
		f.written(in, m)
		return true
	}
	if in.carries == nil {
		return w.demand(f, in, in.reads, m) && w.demandPreds(f, in, m)
	}
	return in.carries(w, f, in, m)
}

// demand reports a register that is not defined.
func (w *warp) demand(f *frame, in *instruction, slots []int, m uint32) bool {
	for _, s := range slots {
		if missing := m &^ f.defined[s]; missing != 0 {
			w.undefined(f, s, next(missing), false)
			return false
		}
	}
	return true
}

func (w *warp) demandPreds(f *frame, in *instruction, m uint32) bool {
	for _, p := range in.readPreds {
		if missing := m &^ f.predDefined[p]; missing != 0 {
			w.undefined(f, p, next(missing), true)
			return false
		}
	}
	return true
}

// undefined reports a register, or does nothing where that is ignored.
func (w *warp) undefined(f *frame, slot, thread int, pred bool) bool {
	if w.block.run.ignored[Uninitialised] {
		return true
	}
	detail := "register " + f.fn.registerName(slot, pred) + " was not written"
	if why := f.causeOf(slot, thread, pred); why&^causeNumber == causeInstruction {
		from := &w.block.kernel.code[why&causeNumber]
		what := "loads memory of the thread that was not written"
		if from.flow == sync {
			what = "reads a thread that takes no part"
		}
		detail = fmt.Sprintf("register %s is undefined: line %d %s", f.fn.registerName(slot, pred), from.source.Pos.Line, what)
	} else if number, isPred := int(why&causeNumber), why&^causeNumber == causePredicate; number != slot || isPred != pred {
		detail = fmt.Sprintf("register %s is undefined: register %s was not written", f.fn.registerName(slot, pred), f.fn.registerName(number, isPred))
	}
	w.fail(&Fault{Kind: Uninitialised, Detail: detail}, thread)
	return false
}

// undefinedBits are those of a register in a thread.
func (f *frame) undefinedBits(slot, thread int) uint64 {
	switch {
	case f.defined[slot]>>thread&1 != 0:
		return 0
	case f.holes == nil:
		return ^uint64(0)
	}
	return f.holes.bits.regs[slot][thread]
}

// causeOf is why a register is undefined in a thread.
func (f *frame) causeOf(slot, thread int, pred bool) (why cause) {
	own := causeRegister
	if pred {
		own = causePredicate
	}
	if f.holes != nil {
		if why = f.holes.causes[slot][thread]; pred {
			why = f.holes.predCauses[slot][thread]
		}
	}
	if why == 0 {
		why = own | cause(slot) //nolint:gosec // few registers
	}
	return why
}

// hole is the frame's undefined values, which are made at the first one.
func (f *frame) hole() *undefined {
	if f.holes == nil {
		f.holes = &undefined{causes: make([][warpThreads]cause, len(f.regs)), predCauses: make([][warpThreads]cause, len(f.preds))}
		f.holes.bits.regs = make([]lanes, len(f.regs))
		f.holes.forget()
	}
	return f.holes
}

// forget makes all registers those that nobody wrote.
func (u *undefined) forget() {
	clear(u.causes)
	clear(u.predCauses)
	for n := range u.bits.regs {
		for k := range u.bits.regs[n] {
			u.bits.regs[n][k] = ^uint64(0)
		}
	}
}

// lose gives a register of a thread undefined bits; none make it defined.
func (f *frame) lose(slot, thread int, bits uint64, why cause) {
	u := f.hole()
	u.bits.regs[slot][thread], u.causes[slot][thread] = bits, why
	if f.defined[slot] |= 1 << thread; bits != 0 {
		f.defined[slot] &^= 1 << thread
	}
}

// losePred makes a predicate of a thread defined or not.
func (f *frame) losePred(slot, thread int, lost bool, why cause) {
	f.hole().predCauses[slot][thread] = why
	if f.predDefined[slot] |= 1 << thread; lost {
		f.predDefined[slot] &^= 1 << thread
	}
}

// causeAmong is the cause of the first undefined operand of a thread; 0 where all are defined.
func (f *frame) causeAmong(in *instruction, thread int) cause {
	for _, s := range in.reads {
		if f.defined[s]>>thread&1 == 0 {
			return f.causeOf(s, thread, false)
		}
	}
	for _, p := range in.readPreds {
		if f.predDefined[p]>>thread&1 == 0 {
			return f.causeOf(p, thread, true)
		}
	}
	return 0
}

// carriesAll makes all results undefined where any operand is.
func carriesAll(_ *warp, f *frame, in *instruction, m uint32) bool {
	for ; m != 0; m &= m - 1 {
		n := next(m)
		f.loseAll(in, n, f.causeAmong(in, n))
	}
	return true
}

func (f *frame) loseAll(in *instruction, thread int, why cause) {
	bits := uint64(0)
	if why != 0 {
		bits = ^uint64(0)
	}
	for _, s := range in.writes {
		f.lose(s, thread, bits, why)
	}
	for _, p := range in.writePreds {
		f.losePred(p, thread, why != 0, why)
	}
}

// carriesBits is for an instruction that moves the bits of some operands as the others say: undefined bits move in the same way.
func carriesBits(run action, data, control []int) carrying {
	return func(w *warp, f *frame, in *instruction, m uint32) bool {
		u, known := f.hole(), m
		for _, s := range control {
			known &= f.defined[s]
		}
		for _, p := range in.readPreds {
			known &= f.predDefined[p]
		}
		carriesAll(w, f, in, m&^known)
		var causes [warpThreads]cause
		for rest := known; rest != 0; rest &= rest - 1 {
			n := next(rest)
			causes[n] = f.causeAmong(in, n)
			for _, s := range data {
				u.bits.regs[s][n] = f.undefinedBits(s, n)
			}
			for _, s := range control {
				u.bits.regs[s][n] = f.regs[s][n]
			}
		}
		u.bits.preds = f.preds
		run(w, &u.bits, known)
		for _, d := range in.writes {
			for rest := known; rest != 0; rest &= rest - 1 {
				n := next(rest)
				f.lose(d, n, u.bits.regs[d][n], causes[n])
			}
		}
		return true
	}
}

// carriesEach is for an instruction whose result has undefined bits where those of an operand are, but for bits that another operand
// decides: a zero of and, a one of or.
func carriesEach(op ptx.Opcode, ones uint64, operands []int) carrying {
	return func(_ *warp, f *frame, in *instruction, m uint32) bool {
		for ; m != 0; m &= m - 1 {
			n := next(m)
			var lost, decided uint64
			for _, s := range operands {
				bits := f.undefinedBits(s, n)
				lost |= bits
				switch op {
				case ptx.OpAnd:
					decided |= ^f.regs[s][n] &^ bits
				case ptx.OpOr:
					decided |= f.regs[s][n] &^ bits
				default:
				}
			}
			f.lose(in.writes[0], n, lost&ones&^decided, f.causeAmong(in, n))
		}
		return true
	}
}

// carriesPredicate is for and and or with a predicate that decides alone.
func carriesPredicate(op ptx.Opcode, slots []int, negated []bool) carrying {
	return func(_ *warp, f *frame, in *instruction, m uint32) bool {
		for ; m != 0; m &= m - 1 {
			n := next(m)
			why := f.causeAmong(in, n)
			for k, p := range slots {
				value := f.predMask(p, negated[k])>>n&1 != 0
				if known := p == none || f.predDefined[p]>>n&1 != 0; known && value == (op == ptx.OpOr) {
					why = 0
				}
			}
			f.loseAll(in, n, why)
		}
		return true
	}
}

// carriesStore is for a store: its address is defined, and so is the value, but in memory that is the thread's own.
func carriesStore(p pointer, slots []int, each int) carrying {
	return func(w *warp, f *frame, _ *instruction, m uint32) bool {
		for ; m != 0; m &= m - 1 {
			n := next(m)
			if f.undefinedBits(p.base, n)&p.ones != 0 {
				w.undefined(f, p.base, n, false)
				return false
			}
			if space := p.space; space == ptx.Local || space == ptx.Generic && spaceAt(p.of(f, n)) == ptx.Local {
				continue
			}
			for _, s := range slots {
				if f.undefinedBits(s, n)&mask(8*each) != 0 { //nolint:mnd // bits
					w.undefined(f, s, n, false)
					return false
				}
			}
		}
		return true
	}
}

// carriesShuffle is for a shuffle: its value may be undefined in threads that nobody reads it from, the rest may not.
func carriesShuffle(others []int) carrying {
	return func(w *warp, f *frame, in *instruction, m uint32) bool {
		return w.demand(f, in, others, m)
	}
}

// carriesCall is for a call: arguments are the function's own.
func carriesCall(*warp, *frame, *instruction, uint32) bool { return true }

// undefinedRule chooses how the current instruction treats undefined operands. Those that are not named here need all of them.
func (c *compiler) undefinedRule(i *ptx.Instruction) {
	to := c.to
	if to.carries != nil || to.run == nil || len(to.reads)+len(to.readPreds) == 0 {
		return
	}
	data := -1 // of the operands, in front; -1: the result depends on all bits
	switch i.Op {
	case ptx.OpAnd, ptx.OpOr, ptx.OpXor, ptx.OpNot:
		if i.Type(0) == ptx.Pred {
			c.carryPredicates(i)
			return
		}
		to.carries = carriesEach(i.Op, mask(i.Type(0).Bits()), c.inputs)
		return
	case ptx.OpLop3:
		to.carries = carriesEach(i.Op, mask(32), c.inputs[:3]) //nolint:mnd // its only type
		return
	case ptx.OpMov, ptx.OpBrev:
		data = len(c.inputs)
	case ptx.OpCvt:
		if i.Type(0).IsInteger() && i.Type(1).IsInteger() && !i.Has(ptx.ModSat) {
			data = 1
		}
	case ptx.OpShl, ptx.OpShr, ptx.OpBfe:
		data = 1
	case ptx.OpShf, ptx.OpPrmt, ptx.OpBfi, ptx.OpSelp:
		data = 2
	case ptx.OpSetp:
		if len(i.Operands) > 3 && i.Mod(ptx.KindOperation) != ptx.ModXor {
			c.carryPredicates(i)
			return
		}
	default:
		if !computes(i.Op) {
			return
		}
	}
	if data < 0 || len(to.writes) == 0 || overlap(c.inputs[:data], c.inputs[data:]) {
		to.carries = carriesAll
		return
	}
	to.carries = carriesBits(to.run, c.inputs[:data:data], c.inputs[data:])
}

// carryPredicates is for predicates that are combined: the last operands.
func (c *compiler) carryPredicates(i *ptx.Instruction) {
	from := 1
	if i.Op == ptx.OpSetp {
		from = 3 // the predicate alone
	}
	op := i.Op
	switch i.Mod(ptx.KindOperation) {
	case ptx.ModAnd:
		op = ptx.OpAnd
	case ptx.ModOr:
		op = ptx.OpOr
	default:
	}
	c.to.carries = carriesAll
	if op != ptx.OpAnd && op != ptx.OpOr {
		return
	}
	var slots []int
	var negated []bool
	for n := from; n < len(i.Operands); n++ {
		slot, not := c.predicate(&i.Operands[n])
		slots, negated = append(slots, slot), append(negated, not)
	}
	c.to.carries = carriesPredicate(op, slots, negated)
}

// computes reports whether an instruction reads registers alone and changes nothing else.
func computes(op ptx.Opcode) bool {
	switch op {
	case ptx.OpAdd, ptx.OpSub, ptx.OpMul, ptx.OpMad, ptx.OpFma, ptx.OpDiv, ptx.OpRem, ptx.OpMin, ptx.OpMax, ptx.OpAbs, ptx.OpNeg, ptx.OpSad,
		ptx.OpSqrt, ptx.OpRcp, ptx.OpRsqrt, ptx.OpSin, ptx.OpCos, ptx.OpLg2, ptx.OpEx2, ptx.OpTanh, ptx.OpCopysign, ptx.OpDp4a,
		ptx.OpCnot, ptx.OpBfind, ptx.OpClz, ptx.OpPopc, ptx.OpSlct, ptx.OpSet, ptx.OpTestp, ptx.OpCvta, ptx.OpIsspacep:
		return true
	default:
		return false
	}
}

func overlap(a, b []int) bool {
	for _, s := range a {
		for _, t := range b {
			if s == t {
				return true
			}
		}
	}
	return false
}
