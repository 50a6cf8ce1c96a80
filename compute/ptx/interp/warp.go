package interp

import (
	"math/bits"

	"github.com/go-vram/vram/compute/ptx"
)

// warp is 32 threads in lock step, as far as they are at the same instruction.
//
// Each thread has a place: a frame and the index of its next instruction. Threads of one place are a group; advance runs the group
// that is deepest in calls and there first in the text, so that groups meet again where branches do. Every other share of
// instructions belongs to the group that ran longest ago, so that no thread waits for one that never runs.
//
// Its methods are many because instructions are: each family of them that touches more than registers has one.
type warp struct {
	block  *block
	index  int
	live   uint32 // threads that did not exit
	waits  uint32 // of live: for others
	pc     [warpThreads]int
	frames [warpThreads]*frame
	ran    [warpThreads]int64 // when a thread ran last, in instructions
	entry  *frame

	at     int    // the instruction that is executed
	frame  *frame // of the group
	group  uint32
	favour uint32 // threads that run before others, for a while
	strong int    // atomic accesses of the group since the last turn

	instructions int64
	fault        error

	meet  meetings
	local [warpThreads]localMemory
	async [warpThreads]asyncs
	order warpOrder

	products *products
}

// begin makes the warp ready for another block.
func (w *warp) begin() {
	threads := min(w.block.threads-w.index*warpThreads, warpThreads)
	w.live, w.waits, w.favour, w.instructions = uint32(1<<threads-1), 0, 0, 0 //nolint:gosec // 32 bits
	k := w.block.kernel
	if w.entry == nil {
		w.entry = w.newFrame(k.entry, nil)
	} else {
		w.entry.renew(w)
	}
	for n := range w.pc {
		w.pc[n], w.frames[n], w.ran[n] = k.entry.start, w.entry, 0
		w.local[n].clear()
		w.async[n] = asyncs{}
	}
	w.meet.waiting = 0
	if w.products != nil {
		w.products.renew()
	}
	w.order.begin(w)
}

// runnable are the threads that do not wait.
func (w *warp) runnable() uint32 { return w.live &^ w.waits }

// advance executes up to so many instructions.
func (w *warp) advance(budget int64) {
	for end := w.instructions + budget; w.instructions < end && w.fault == nil; {
		if !w.pick() {
			break
		}
		w.execute(end)
	}
	if w.instructions >= w.block.run.limit && w.fault == nil {
		w.fail(&Fault{Kind: InstructionLimit, Detail: "a warp executed as many as Launch.MaxInstructions allows"}, next(w.group))
	}
	w.turn()
}

// turn lets the group run that ran longest ago, or ends that.
func (w *warp) turn() {
	others := w.runnable()
	if w.favour != 0 || others == 0 {
		w.favour = 0
		return
	}
	oldest := next(others)
	for rest := others; rest != 0; rest &= rest - 1 {
		if n := next(rest); w.ran[n] < w.ran[oldest] {
			oldest = n
		}
	}
	w.favour = w.groupOf(oldest, others)
}

// groupOf are the threads at the place of one.
func (w *warp) groupOf(one int, among uint32) (group uint32) {
	for ; among != 0; among &= among - 1 {
		if n := next(among); w.pc[n] == w.pc[one] && w.frames[n] == w.frames[one] {
			group |= 1 << n
		}
	}
	return group
}

// pick chooses the group that runs. It reports false where all threads wait or have ended.
func (w *warp) pick() bool {
	candidates := w.runnable()
	if candidates == 0 {
		return false
	}
	if favoured := candidates & w.favour; favoured != 0 {
		candidates = favoured
	}
	best := next(candidates)
	for rest := candidates & (candidates - 1); rest != 0; rest &= rest - 1 {
		if n := next(rest); w.before(n, best) {
			best = n
		}
	}
	w.frame, w.at, w.group = w.frames[best], w.pc[best], w.groupOf(best, candidates)
	return true
}

// before reports whether thread a runs rather than b.
func (w *warp) before(a, b int) bool {
	if w.frames[a].depth != w.frames[b].depth {
		return w.frames[a].depth > w.frames[b].depth
	}
	return w.pc[a] < w.pc[b]
}

// mergeAt is the first instruction, from the current one on, at which other threads of the same frame stand.
func (w *warp) mergeAt() int {
	merge := len(w.block.kernel.code)
	for rest := w.runnable() &^ w.group; rest != 0; rest &= rest - 1 {
		if n := next(rest); w.frames[n] == w.frame && w.pc[n] >= w.at {
			merge = min(merge, w.pc[n])
		}
	}
	return merge
}

// settle notes where the group is.
func (w *warp) settle(pc int) {
	for rest := w.group; rest != 0; rest &= rest - 1 {
		n := next(rest)
		w.pc[n], w.ran[n] = pc, w.instructions
	}
}

// execute runs the group until it ends, waits, splits, meets another one, or has had its share.
func (w *warp) execute(end int64) { //nolint:gocognit // the loop that all time goes by in; its cases share the group's state
	code, f, group, pc := w.block.kernel.code, w.frame, w.group, w.at
	alone := w.runnable() == group
	merge := len(code)
	if !alone {
		merge = w.mergeAt()
	}
	low, started := pc, w.instructions
	for {
		if w.instructions >= end {
			w.settle(pc)
			break
		}
		in := &code[pc]
		m := group
		if in.guard != none {
			if missing := group &^ f.predDefined[in.guard]; missing != 0 {
				if w.at = pc; !w.undefined(f, in.guard, next(missing), true) {
					return
				}
			}
			if p := f.preds[in.guard]; in.negate {
				m &^= p
			} else {
				m &= p
			}
		}
		w.instructions++
		switch in.flow {
		case plain:
			if m != 0 {
				w.at = pc
				if f.ready(in, m) {
					f.written(in, m)
				} else if !w.carry(f, in, m) {
					return
				}
				in.run(w, f, m)
				if w.fault != nil {
					return
				}
			}
			pc++
			if in.strong && !alone && w.spins() {
				break
			}
			if pc < merge {
				continue
			}
		case branch:
			switch m {
			case group:
				pc = in.target
				if alone || pc < merge && pc >= low {
					continue
				}
			case 0:
				if pc++; pc < merge {
					continue
				}
			default:
				w.settle(pc + 1)
				w.split(m, in.target)
				w.block.instructions += w.instructions - started
				return
			}
		default:
			w.at = pc
			w.settle(pc + 1)
			if m != 0 && (f.ready(in, m) || w.carry(f, in, m)) {
				w.special(in, f, m)
			}
			w.block.instructions += w.instructions - started
			return
		}
		w.settle(pc)
		break
	}
	w.block.instructions += w.instructions - started
}

// atomicShare is how many atomic accesses a group makes before another one of the warp has its turn: it may wait for that.
const atomicShare = 32

// spins reports whether the group has had its share of atomic accesses.
func (w *warp) spins() bool {
	if w.strong++; w.strong < atomicShare {
		return false
	}
	w.strong = 0
	w.turn()
	return true
}

// split sends some threads of the group to another instruction.
func (w *warp) split(m uint32, target int) {
	for ; m != 0; m &= m - 1 {
		w.pc[next(m)] = target
	}
}

// registerName is the name of a register by its slot.
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

// written notes the results of an instruction.
func (f *frame) written(in *instruction, m uint32) {
	for _, s := range in.writes {
		f.defined[s] |= m
	}
	for _, p := range in.writePreds {
		f.predDefined[p] |= m
	}
}

// special executes an instruction that changes the order of execution. The group already stands behind it.
func (w *warp) special(in *instruction, f *frame, m uint32) {
	if touches := w.block.kernel.touches; touches != nil && !w.products.touch(touches[w.at], f, m) {
		return
	}
	switch in.flow {
	case call:
		w.call(in, f, m)
	case ret:
		w.ret(f, m)
	case exit:
		w.exit(m)
	case trap:
		w.fail(&Fault{Kind: Trap, Detail: w.trapped(in, f, next(m))}, next(m))
	case sync:
		w.arrive(in, f, m)
	case barrier:
		w.arriveAtBarrier(in, f, m)
	case rest, plain, branch:
		w.turn()
	}
}

// exit ends threads; threads that wait for them may go on.
func (w *warp) exit(m uint32) {
	for rest := m; rest != 0 && w.block.asyncs > 0; rest &= rest - 1 {
		w.deliver(next(rest), 0, true)
	}
	if w.products != nil && m == w.live {
		w.products.commit()
		w.products.deliver(0)
	}
	w.live &^= m
	w.block.live -= bits.OnesCount32(m)
	w.meetAgain()
	w.block.completeBarriers()
}

// fail keeps the first fault, at the current instruction of a thread.
func (w *warp) fail(f *Fault, thread int) {
	if w.fault != nil {
		return
	}
	f.Kernel = w.block.kernel.name
	f.Place = w.block.place(w.at, w.index*warpThreads+thread)
	w.fault = f
}

// place names an instruction and a thread.
func (b *block) place(pc, thread int) Place {
	return b.kernel.place(pc, b.index, b.run.launch.Block.at(uint64(thread))) //nolint:gosec // not negative
}

func (k *Kernel) place(pc int, at, thread Dim3) Place {
	in := &k.code[pc]
	p := Place{Block: at, Thread: thread, Line: in.source.Pos.Line, Instruction: in.source.String(), Write: writes(in.source.Op)}
	if l := in.source.Source; l != nil {
		p.File, p.SourceLine = k.module.File(l.File), l.Line
	}
	return p
}

// writes reports whether an opcode stores.
func writes(op ptx.Opcode) bool {
	return op == ptx.OpSt || op == ptx.OpAtom || op == ptx.OpRed || op == ptx.OpCpAsync
}
