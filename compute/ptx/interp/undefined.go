package interp

import "fmt"

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
		return w.demand(f, in.reads, m) && w.demandPreds(f, in, m)
	}
	return in.carries(w, f, in, m)
}

// demand reports a register that is not defined.
func (w *warp) demand(f *frame, slots []int, m uint32) bool {
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
