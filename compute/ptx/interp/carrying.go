package interp

import (
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// causeAmong returns the cause of the first undefined operand of a thread; 0 where all are defined.
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
func carriesAll(_ *site, f *frame, in *instruction, m uint32) bool {
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

// carriesBits is for an instruction that moves the bits of some operands as the others say: undefined bits move in the
// same way.
func carriesBits(compute computation, data, control []int) carrying {
	return func(s *site, f *frame, in *instruction, m uint32) bool {
		u, known := f.hole(), m
		for _, s := range control {
			known &= f.defined[s]
		}
		for _, p := range in.readPreds {
			known &= f.predDefined[p]
		}
		carriesAll(s, f, in, m&^known)
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
		compute(&u.bits, known)
		for _, d := range in.writes {
			for rest := known; rest != 0; rest &= rest - 1 {
				n := next(rest)
				f.lose(d, n, u.bits.regs[d][n], causes[n])
			}
		}
		return true
	}
}

// carriesEach is for an instruction whose result bits depend on the same bits of the operands: a bit is undefined where
// an operand's bit is, unless another operand decides it: a zero of and, a one of or.
func carriesEach(op ptx.Opcode, ones uint64, operands []int) carrying {
	return func(_ *site, f *frame, in *instruction, m uint32) bool {
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
	return func(_ *site, f *frame, in *instruction, m uint32) bool {
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
	return func(s *site, f *frame, _ *instruction, m uint32) bool {
		for ; m != 0; m &= m - 1 {
			n := next(m)
			if f.undefinedBits(p.base, n)&p.ones != 0 {
				s.undefined(f, p.base, n, false)
				return false
			}
			if space := p.space; space == ptx.Local || space == ptx.Generic && spaceAt(p.of(f, n)) == ptx.Local {
				continue
			}
			for _, slot := range slots {
				if f.undefinedBits(slot, n)&mask(8*each) != 0 { //nolint:mnd // bits
					s.undefined(f, slot, n, false)
					return false
				}
			}
		}
		return true
	}
}

// carriesShuffle is for a shuffle: its value may be undefined in threads that nobody reads it from, the rest may not.
func carriesShuffle(others []int) carrying {
	return func(s *site, f *frame, _ *instruction, m uint32) bool {
		return s.demand(f, others, m)
	}
}

// carriesCall is for a call: arguments are the function's own.
func carriesCall(*site, *frame, *instruction, uint32) bool { return true }

// rule chooses how the current instruction treats undefined operands. Without one the instruction needs all of them.
type rule func(c *lowering, i *ptx.Instruction) carrying

// spreads is for an instruction that reads registers alone, changes nothing else, and depends on all their bits.
func spreads(*lowering, *ptx.Instruction) carrying { return carriesAll }

// moves is for an instruction that moves the bits of its first operands as the others say.
func moves(data int) rule {
	return func(c *lowering, _ *ptx.Instruction) carrying { return carriesMoved(c, data) }
}

func carriesMoved(c *lowering, data int) carrying {
	if len(c.to.writes) == 0 || overlap(c.inputs[:data], c.inputs[data:]) {
		return carriesAll
	}
	return carriesBits(c.to.compute, c.inputs[:data:data], c.inputs[data:])
}

// copies is for an instruction that moves the bits of all operands.
func copies(c *lowering, _ *ptx.Instruction) carrying { return carriesMoved(c, len(c.inputs)) }

// converts is for cvt: between integers it moves bits.
func converts(c *lowering, i *ptx.Instruction) carrying {
	if i.Type(0).IsInteger() && i.Type(1).IsInteger() && !i.Has(ptx.ModSat) {
		return carriesMoved(c, 1)
	}
	return carriesAll
}

// decides is for bitwise logic, in which one operand may decide a bit alone.
func decides(c *lowering, i *ptx.Instruction) carrying {
	switch {
	case i.Op == ptx.OpLop3:
		return carriesEach(i.Op, mask(32), c.inputs[:3]) //nolint:mnd // its only type
	case i.Type(0) == ptx.Pred:
		return carriesPredicates(c, i.Op, i.Operands[1:])
	}
	return carriesEach(i.Op, mask(i.Type(0).Bits()), c.inputs)
}

// combines is for setp, which may combine its result with a predicate.
func combines(c *lowering, i *ptx.Instruction) carrying {
	op := i.Op
	switch i.Mod(ptx.KindOperation) {
	case ptx.ModAnd:
		op = ptx.OpAnd
	case ptx.ModOr:
		op = ptx.OpOr
	default:
	}
	return carriesPredicates(c, op, i.Operands[min(3, len(i.Operands)):]) //nolint:mnd // the predicate alone
}

// carriesPredicates is for predicates that are combined.
func carriesPredicates(c *lowering, op ptx.Opcode, operands []ptx.Operand) carrying {
	if op != ptx.OpAnd && op != ptx.OpOr || len(operands) == 0 {
		return carriesAll
	}
	var slots []int
	var negated []bool
	for n := range operands {
		slot, not := c.predicate(&operands[n])
		slots, negated = append(slots, slot), append(negated, not)
	}
	return carriesPredicate(op, slots, negated)
}

func overlap(a, b []int) bool {
	return slices.ContainsFunc(a, func(s int) bool { return slices.Contains(b, s) })
}
