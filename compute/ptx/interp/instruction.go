package interp

import "github.com/go-vram/vram/compute/ptx"

// full is the mask of all threads of a warp.
const (
	warpThreads = 32
	full        = 1<<warpThreads - 1
)

// lanes are the values of a register in the threads of a warp. A value has the bits of its type, zero above them.
type lanes [warpThreads]uint64

// action executes an instruction in the threads of a mask.
type action func(w *warp, f *frame, m uint32)

// flow is the effect of an instruction on the order of execution.
type flow uint8

const (
	plain   flow = iota // the next instruction follows
	branch              // to target
	call                // of callee
	ret                 // to the caller; out of an entry it is exit
	exit                // the thread ends
	trap                // the launch ends
	sync                // waits for the threads of a mask
	barrier             // waits for the threads of a block
	rest                // another group may run
)

// none is the slot of an operand that is not there.
const none = -1

// instruction is one of ptx, with operands resolved to slots.
type instruction struct {
	run    action
	flow   flow
	strong bool // of an access: atomic, volatile or ordered
	swaps  bool // atom.cas
	negate bool // the guard
	guard  int  // slot of a predicate, or none

	reads, writes         []int // registers whose initialisation counts
	readPreds, writePreds []int
	carries               carrying // where operands are undefined; nil: that is a fault

	target int // of a branch
	callee *callee
	meet   *meeting
	bar    *barrierForm
	source *ptx.Instruction
	fn     *function
}

// callee is a function with the places of its arguments.
type callee struct {
	fn                 *function
	system             *system // instead of the function's body; else nil
	arguments, results []passing
}

// passing copies an argument or a result: between a register or a variable of the caller and a variable of the function.
type passing struct {
	slot   int // a register of the caller, or none
	local  int // else where the variable is in the caller's frame
	formal int // where the variable is in the function's frame
	bytes  int
}

// function is a body that can be executed.
type function struct {
	name       string
	entry      bool
	start      int // of its instructions
	registers  int // slots: registers, then constants
	predicates int
	constants  []constant
	localBytes int // of a frame
	locals     map[*ptx.Variable]int
	source     *ptx.Function
	watched    bool // it has products, whose registers are followed
}

// constant is a slot that is filled when a frame is made.
type constant struct {
	slot    int
	value   uint64
	special ptx.Special
	local   bool // value is an offset in the frame
	dynamic bool // value is an offset in dynamic shared memory
	global  *ptx.Variable
}

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
	back        int // where the caller goes on
	by          *instruction
	use         *registerUse
	holes       *undefined // nil: every register is defined as a whole, or was never written
}

// newFrame makes a frame with its constants.
func (w *warp) newFrame(fn *function, parent *frame) *frame {
	f := &frame{
		fn: fn, parent: parent, regs: make([]lanes, fn.registers), defined: make([]uint32, fn.registers),
		preds: make([]uint32, fn.predicates), predDefined: make([]uint32, fn.predicates),
	}
	if parent != nil {
		f.depth, f.base = parent.depth+1, parent.base+parent.fn.localBytes
	}
	for _, c := range fn.constants {
		f.fill(w, c)
	}
	if fn.watched {
		f.use = newRegisterUse(fn.registers)
	}
	return f
}

// fill gives a constant its value.
func (f *frame) fill(w *warp, c constant) {
	f.defined[c.slot] = full
	value := c.value
	switch {
	case c.special != ptx.NoSpecial:
		w.fillSpecial(&f.regs[c.slot], c.special)
		return
	case c.local:
		value += uint64(f.base) //nolint:gosec // not negative
	case c.dynamic:
		value += uint64(w.block.kernel.staticSharedBytes) //nolint:gosec // not negative
	case c.global != nil:
		value += w.block.run.globals[c.global]
	}
	for i := range f.regs[c.slot] {
		f.regs[c.slot][i] = value
	}
}

// renew makes the frame of an entry ready for another block.
func (f *frame) renew(w *warp) {
	clear(f.defined)
	clear(f.predDefined)
	if f.holes != nil {
		f.holes.forget()
	}
	if f.use != nil {
		f.use.clear()
	}
	for _, c := range f.fn.constants {
		f.defined[c.slot] = full
		if s := c.special; s >= ptx.CtaidX && s <= ptx.CtaidZ || s == ptx.Smid {
			w.fillSpecial(&f.regs[c.slot], s)
		}
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
