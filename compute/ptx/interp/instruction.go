package interp

import "github.com/go-vram/vram/compute/ptx"

// action executes an instruction in the threads of a mask.
type action func(w *warp, f *frame, m uint32)

// computation executes an instruction on registers alone in the threads of a mask.
type computation func(f *frame, m uint32)

// carrying passes undefined bits of operands on to the results, before the instruction is executed. It reports false
// after a fault.
type carrying func(s *site, f *frame, in *instruction, m uint32) bool

// flow is the effect of an instruction on the order of execution.
type flow uint8

const (
	plain  flow = iota // the next instruction follows
	branch             // to target
	leave              // the group ends, waits, or continues elsewhere; its threads are already at the next instruction
)

// none is the slot of an operand that is not there.
const none = -1

// instruction is one of ptx, with operands resolved to slots.
type instruction struct {
	compute computation // nil of an instruction that touches more than registers
	run     action      // else
	flow    flow
	strong  bool // of an access: atomic, volatile or ordered
	swaps   bool // atom.cas
	shaky   bool // .volatile
	bulk    bool // its bytes come by the proxy of products
	negate  bool // the guard
	guard   int  // slot of a predicate, or none

	reads, writes         []int // registers whose initialisation counts
	readPreds, writePreds []int
	carries               carrying // where operands are undefined; nil: that is a fault

	result int // slot that an atomic operation on global memory writes, or none
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

// system is a function that the driver has and not the module, which declares it .extern.
type system struct {
	params, results []int // sizes in bytes
	run             func(w *warp, f *frame, in *instruction, thread int) bool
}

// meeting is an instruction that threads of a warp execute together: .sync with a mask, or aligned.
type meeting struct {
	key     string // instructions of one key meet, wherever they stand
	mask    int    // slot; none where all threads of the warp meet at this very instruction
	inputs  []int
	pred    int // slot of a predicate that is an input, or none
	negated bool
	out     int // or none
	outPred int
	meet    func(w *warp, members uint32) // reads and writes w.meet
	orders  bool                          // memory, too
	moves   bool                          // the first operand goes from thread to thread: it may be undefined
	whole   bool                          // no thread of the warp may be missing
}

// barrierForm is an instruction at a barrier.
type barrierForm struct {
	id, count int // slots; count none: all threads of the block
	arrive    bool
	aligned   bool
	reduce    ptx.Modifier // .and, .or, .popc of bar.red
	pred      int
	negated   bool
	out       int
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

// registerName returns the name of a register by its slot.
func (fn *function) registerName(slot int, pred bool) string {
	n := 0
	for _, r := range fn.source.Registers {
		if (r.Type == ptx.Pred) != pred {
			continue
		}
		if n == slot {
			return r.Name
		}
		n++
	}
	return "?"
}
