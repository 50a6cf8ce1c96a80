package interp

// arriveAtMeeting stops threads at an instruction of the warp until all have come.
func arriveAtMeeting(w *warp, t *meeting, f *frame, m uint32) {
	for rest := m; rest != 0; rest &= rest - 1 {
		n := next(rest)
		w.meet.masks[n] = full
		if t.mask != none {
			w.meet.masks[n] = uint32(f.regs[t.mask][n]) //nolint:gosec // the lower half
			if w.meet.masks[n]>>n&1 == 0 {
				w.fail(&Fault{Kind: DivergentWarp, Detail: "the thread is not in its own mask of members"}, n)
				return
			}
		}
		for k, slot := range t.inputs {
			if t.mask != none {
				w.meet.in[k][n] = f.regs[slot][n]
			}
		}
		w.pc[n] = w.at
	}
	if w.meet.undefined &^= m; t.moves {
		bring(w, f, t.inputs[0], m)
	}
	w.meet.pred = w.meet.pred&^m | f.predMask(t.pred, t.negated)&m
	w.meet.waiting |= m
	w.waits |= m
	meetAll(w, m)
}

// meetAtOnce executes an instruction of a warp for the threads that are there.
func meetAtOnce(w *warp, in *instruction, f *frame, m uint32) {
	t := in.meet
	for k, slot := range t.inputs {
		w.meet.in[k] = f.regs[slot]
	}
	if w.meet.undefined &^= m; t.moves {
		bring(w, f, t.inputs[0], m)
	}
	w.meet.pred, w.meet.missing = f.predMask(t.pred, t.negated), 0
	t.meet(w, m)
	take(w, in, f, m, w.at)
}

// bring notes threads whose value for a shuffle is undefined.
func bring(w *warp, f *frame, slot int, m uint32) {
	missing := m &^ f.defined[slot]
	w.meet.undefined |= missing
	for ; missing != 0; missing &= missing - 1 {
		n := next(missing)
		w.meet.holes[n], w.meet.causes[n] = f.undefinedBits(slot, n), f.causeOf(slot, n, false)
	}
}

// meetAgain looks at threads that wait after others have ended.
func meetAgain(w *warp) { meetAll(w, w.meet.waiting) }

// meetAll looks at each group among the threads of m: threads that arrive together may have different masks.
func meetAll(w *warp, m uint32) {
	for m &= w.meet.waiting; m != 0; m &= w.meet.waiting {
		one := next(m)
		mask, at := w.meet.masks[one], w.pc[one]
		meetAt(w, one)
		for rest := m; rest != 0; rest &= rest - 1 { // the outcome is the same for all threads of the group
			if n := next(rest); w.meet.masks[n] == mask && w.pc[n] == at {
				m &^= 1 << n
			}
		}
	}
}

// meetAt lets the threads go that wait for the same as one, if all have come.
func meetAt(w *warp, one int) {
	code := w.block.kernel.code
	t, want := code[w.pc[one]].meet, w.meet.masks[one]
	var members uint32
	for rest := w.meet.waiting; rest != 0; rest &= rest - 1 {
		n := next(rest)
		other := code[w.pc[n]].meet
		if w.meet.masks[n] == want && (other == t || t.mask != none && other.key == t.key) {
			members |= 1 << n
		}
	}
	if members != want&w.live || w.fault != nil {
		return
	}
	w.meet.waiting &^= members
	w.waits &^= members
	conclude(w, t, members, one)
}

// conclude executes an instruction of the warp for those that have met.
func conclude(w *warp, t *meeting, members uint32, one int) {
	at := w.at
	w.at = w.pc[one]
	if t.whole && members != full {
		w.fail(&Fault{Kind: DivergentWarp, Detail: "the instruction needs all 32 threads of the warp"}, one)
		return
	}
	w.meet.missing = 0
	w.frame = w.frames[one]
	if t.meet != nil {
		t.meet(w, members)
	}
	if w.fault != nil {
		return
	}
	if t.orders {
		w.order.joinThreads(members)
	}
	w.at = at
	for members != 0 {
		n := next(members)
		group := w.groupOf(n, members)
		take(w, &w.block.kernel.code[w.pc[n]], w.frames[n], group, w.pc[n])
		for members &^= group; group != 0; group &= group - 1 {
			w.pc[next(group)]++
		}
	}
}

// take writes the result in threads of a frame.
func take(w *warp, in *instruction, f *frame, m uint32, at int) {
	f.written(in, m)
	if in.meet.out != none {
		f.merge(in.meet.out, &w.meet.out, m)
		if missing := w.meet.missing & m; missing != 0 && !w.ignores(Uninitialised) {
			for ; missing != 0; missing &= missing - 1 {
				loseShuffled(w, in, f, next(missing), at)
			}
		}
	}
	if in.meet.outPred != none {
		f.setPred(in.meet.outPred, w.meet.outPred, m)
	}
}

// loseShuffled makes the result of a shuffle undefined as the value that was read is. A thread that takes no part has none.
func loseShuffled(w *warp, in *instruction, f *frame, n, at int) {
	if from := w.meet.from[n]; from != none {
		f.lose(in.meet.out, n, w.meet.holes[from], w.meet.causes[from])
		return
	}
	f.lose(in.meet.out, n, ^uint64(0), causeInstruction|cause(at)) //nolint:gosec // not negative
}

// together reports whether all threads are in one call.
func together(w *warp, members uint32) bool {
	for rest := members; rest != 0; rest &= rest - 1 {
		if n := next(rest); w.frames[n] != w.frame {
			w.fail(&Fault{Kind: DivergentWarp, Detail: "the threads of the warp are in different calls"}, n)
			return false
		}
	}
	return true
}

// meets makes the current instruction a meeting of threads.
func (c *lowering) meets(t *meeting) *meeting {
	t.pred, t.out, t.outPred = none, none, none
	c.to.flow, c.to.meet = leave, t
	c.to.run = func(w *warp, f *frame, m uint32) { arriveAtMeeting(w, t, f, m) }
	return t
}

// wholeWarp makes the current instruction one of all threads of a warp.
func (c *lowering) wholeWarp() *meeting { return c.meets(&meeting{mask: none, whole: true}) }
