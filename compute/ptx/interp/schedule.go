package interp

// begin makes the warp ready for another block.
func (w *warp) begin() {
	threads := min(w.block.threads-w.index*warpThreads, warpThreads)
	w.live, w.waits, w.favour, w.instructions = uint32(1<<threads-1), 0, 0, 0 //nolint:gosec // 32 bits
	k := w.block.kernel
	w.entry.renew(&w.site)
	for n := range w.pc {
		w.pc[n], w.ran[n] = k.entry.start, 0
		if w.frames[n] != w.entry {
			w.frames[n] = w.entry
		}
		if len(w.memory.local[n].bytes) > 0 {
			w.memory.local[n].clear()
		}
		w.copies.of[n].clear()
	}
	w.meet.waiting, w.polls = 0, polls{}
	if w.products != nil {
		w.products.renew()
	}
	w.order.begin()
}

// runnable returns the live threads that do not wait.
func (w *warp) runnable() uint32 { return w.live &^ w.waits }

// advance executes up to so many instructions.
func (w *warp) advance(budget int64) {
	w.polls.over = false
	for end := w.instructions + budget; w.instructions < end && w.fault == nil && !w.polls.over; {
		if !w.pick() {
			break
		}
		w.execute(end)
	}
	if w.instructions > w.block.run.limit && w.fault == nil {
		w.fail(&Fault{Kind: InstructionLimit, Detail: "a warp executed more than Launch.MaxInstructions allows"}, next(w.group))
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

// groupOf returns the threads that are at the place of thread one.
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

// mergeAt returns the first instruction, from the current one on, at which other threads of the same frame stand.
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
				if in.compute != nil {
					in.compute(f, m)
				} else if in.run(w, f, m); w.fault != nil {
					return
				}
			}
			pc++
			if in.strong && (w.polls.over || !alone && w.spins()) {
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
				in.run(w, f, m)
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
