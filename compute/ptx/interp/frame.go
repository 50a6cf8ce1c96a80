package interp

// frame is a call of a function by threads of a warp.
type frame struct {
	fn          *function
	regs        []lanes
	defined     []uint32 // the threads that wrote the register
	preds       []uint32
	predDefined []uint32
	carry       uint32 // the flags of carry chains, a bit for each thread
	parent      *frame
	depth       int
	base        int // of its variables in local memory
	back        int // where the caller continues
	by          *instruction
	use         *registerUse
	holes       *undefined // nil: every register is defined as a whole, or was never written
}

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

// written notes the results of an instruction.
func (f *frame) written(in *instruction, m uint32) {
	for _, s := range in.writes {
		f.defined[s] |= m
	}
	for _, p := range in.writePreds {
		f.predDefined[p] |= m
	}
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

// setPred writes a predicate in the threads of m.
func (f *frame) setPred(slot int, value, m uint32) { f.preds[slot] = f.preds[slot]&^m | value&m }

// A register that nobody wrote is no mistake by itself: compilers move such registers, shuffle them and select them
// away. So each thread's copy of a register keeps which of its bits are undefined. Instructions on registers alone,
// shuffles, and the memory that is one thread's own (.local, and the parameters of functions) pass undefined bits on. A
// use that depends on them is a fault: an address, a store to memory that others see, the condition of a branch or of a
// predicated instruction, and everything else that reads them.

// undefined is which bits of a frame's registers are undefined, where defined says that there are some. Frames without such
// values have none.
type undefined struct {
	bits       frame // registers hold the undefined bits; they mean nothing in a thread whose bits are all defined
	causes     [][warpThreads]cause
	predCauses [][warpThreads]cause
}

// cause is why a register is undefined: causeRegister and a slot, causePredicate and a slot, or causeInstruction and
// its number. 0 is: nobody wrote it.
type cause uint32

const (
	causeRegister cause = (iota + 1) << 30
	causePredicate
	causeInstruction
	causeNumber cause = 1<<30 - 1
)

// undefinedBits returns the undefined bits of a register in a thread.
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

// hole returns the frame's undefined values, which are made at the first one.
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
