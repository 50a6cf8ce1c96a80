package interp

import (
	"fmt"
	"math/bits"

	"github.com/go-vram/vram/compute/ptx"
)

// lowerBarrier translates bar.sync, bar.arrive, bar.red, and barrier with the same.
func lowerBarrier(c *lowering, i *ptx.Instruction) {
	form := &barrierForm{count: none, pred: none, out: none, arrive: i.Op == ptx.OpBarArrive || i.Op == ptx.OpBarrierArrive}
	form.aligned = i.Op == ptx.OpBarSync || i.Op == ptx.OpBarArrive || i.Op == ptx.OpBarRed || i.Has(ptx.ModAligned)
	operands := i.Operands
	if i.Op == ptx.OpBarRed || i.Op == ptx.OpBarrierRed {
		form.reduce = i.Mod(ptx.KindOperation)
		if i.Type(0) == ptx.Pred {
			form.out = c.predOut(&operands[0])
		} else {
			form.out = c.out(&operands[0])
		}
		form.pred, form.negated = c.predIn(&operands[len(operands)-1])
		operands = operands[1 : len(operands)-1]
	}
	form.id = c.in(&operands[0], ptx.B32)
	if len(operands) > 1 {
		form.count = c.in(&operands[1], ptx.B32)
	}
	c.to.flow, c.to.bar = leave, form
	c.to.run = func(w *warp, f *frame, m uint32) { arriveAtBarrier(w, form, f, m) }
	if form.arrive && form.aligned {
		c.meetsAtArrive(form)
	}
}

// meetsAtArrive makes an aligned bar.arrive a meeting of the warp, which counts as a whole: nothing else holds threads that come first.
func (c *lowering) meetsAtArrive(form *barrierForm) {
	t := c.meets(&meeting{mask: none, meet: func(w *warp, members uint32) {
		if together(w, members) {
			arriveAtBarrier(w, form, w.frame, members)
		}
	}})
	c.to.run = func(w *warp, f *frame, m uint32) {
		if sameInstruction(w, m) {
			arriveAtMeeting(w, t, f, m)
		}
	}
}

// arriveAtBarrier stops threads at a barrier.
func arriveAtBarrier(w *warp, form *barrierForm, f *frame, m uint32) {
	first := next(m)
	id := f.regs[form.id][first] & mask(32) //nolint:mnd // a number of 32 bits
	if id >= uint64(len(w.block.barriers)) {
		w.fail(&Fault{Kind: DivergentBarrier, Detail: fmt.Sprintf("there is no barrier %d", id)}, first)
		return
	}
	var expected uint64
	if form.count != none {
		expected = f.regs[form.count][first] & mask(32) //nolint:mnd // likewise
		if expected == 0 || expected%warpThreads != 0 || expected > maxBlockThreads {
			w.fail(&Fault{Kind: DivergentBarrier, Detail: fmt.Sprintf("%d threads are no multiple of a warp", expected)}, first)
			return
		}
	}
	if !sameBarrier(w, form, f, m, id) {
		return
	}
	bar := &w.block.barriers[id]
	if bar.open && bar.expected != int(expected) { //nolint:gosec // at most 1024
		w.fail(&Fault{
			Kind: DivergentBarrier, Other: w.block.waiter(bar),
			Detail: fmt.Sprintf("the barrier is for %d threads here and for %d there", expected, bar.expected),
		}, first)
		return
	}
	bar.open, bar.expected = true, int(expected) //nolint:gosec // at most 1024
	joinBarrier(w, bar, form, f, m, int(id))     //nolint:gosec // at most 15
}

// sameBarrier reports whether the threads name one barrier, and whether all waiting threads of the warp wait at this
// instruction.
func sameBarrier(w *warp, form *barrierForm, f *frame, m uint32, id uint64) bool {
	for rest := m; rest != 0; rest &= rest - 1 {
		if n := next(rest); f.regs[form.id][n]&mask(32) != id { //nolint:mnd // a number of 32 bits
			w.fail(&Fault{Kind: DivergentBarrier, Detail: "the threads of a warp name different barriers"}, n)
			return false
		}
	}
	return !form.aligned || sameInstruction(w, m)
}

// sameInstruction reports whether all threads of the warp that wait at an aligned barrier wait at the current instruction.
func sameInstruction(w *warp, m uint32) bool {
	waiting := w.meet.waiting // some at an aligned bar.arrive
	for n := range w.block.barriers {
		waiting |= w.block.barriers[n].waiting[w.index]
	}
	for ; waiting != 0; waiting &= waiting - 1 {
		t := next(waiting)
		if bar := w.block.kernel.code[w.pc[t]].bar; w.pc[t] != w.at && bar != nil && bar.aligned {
			other := w.block.place(w.pc[t], w.index*warpThreads+t)
			w.fail(&Fault{
				Kind: DivergentBarrier, Other: &other,
				Detail: "an aligned barrier is for all threads of a warp, and others of the warp wait at another instruction",
			}, next(m))
			return false
		}
	}
	return true
}

// joinBarrier counts threads in.
func joinBarrier(w *warp, bar *barrierState, form *barrierForm, f *frame, m uint32, id int) {
	if form.reduce != ptx.NoModifier {
		bar.count += bits.OnesCount32(f.predMask(form.pred, form.negated) & m)
	}
	if bar.waiting[w.index] == 0 && form.aligned {
		bar.arrived += warpThreads // a warp counts as a whole
	} else if !form.aligned {
		bar.arrived += bits.OnesCount32(m)
	}
	if !w.block.run.launch.Strict { // the barrier implies a fence after an atomic access
		w.order.see(&w.order.acquired)
		w.block.seenTurns.addAll(w.order.turns)
	}
	released := w.order.release()
	bar.order.join(&released)
	if !form.arrive {
		bar.waiting[w.index] |= m
		bar.warps |= 1 << w.index
		bar.threads += bits.OnesCount32(m)
		w.waits |= m
		for rest := m; rest != 0; rest &= rest - 1 {
			w.pc[next(rest)] = w.at
		}
	}
	w.block.complete(id)
}

// completeBarriers looks at all barriers after threads have ended.
func (b *block) completeBarriers() {
	for id := range b.barriers {
		if b.barriers[id].open {
			b.complete(id)
		}
	}
}

// complete lets the threads at a barrier go when all have come.
func (b *block) complete(id int) {
	bar := &b.barriers[id]
	switch {
	case bar.expected == 0 && bar.threads < b.live:
		return
	case bar.expected > 0 && bar.arrived < bar.expected:
		return
	case bar.expected > 0 && !b.whole(bar):
		return
	}
	b.settled = b.suspect != nil
	done := *bar
	*bar = barrierState{}
	for rest := done.warps; rest != 0; rest &= rest - 1 {
		w := b.warps[next(rest)]
		passBarrier(w, &done, done.waiting[w.index])
	}
}

// whole reports whether every warp that waits at an aligned barrier is there with all its threads, as its count has it.
func (b *block) whole(bar *barrierState) bool {
	for rest := bar.warps; rest != 0; rest &= rest - 1 {
		w := b.warps[next(rest)]
		m := bar.waiting[w.index]
		if m != w.live && b.kernel.code[w.pc[next(m)]].bar.aligned {
			return false
		}
	}
	return true
}

// passBarrier releases threads of a warp from a barrier.
func passBarrier(w *warp, bar *barrierState, m uint32) {
	w.waits &^= m
	w.order.see(&bar.order)
	w.order.joinThreads(m)
	for ; m != 0; m &= m - 1 {
		n := next(m)
		in := &w.block.kernel.code[w.pc[n]]
		writeReduction(w, in, bar, n)
		w.pc[n]++
	}
}

// writeReduction writes the result of bar.red in a thread.
func writeReduction(w *warp, in *instruction, bar *barrierState, thread int) {
	f, bit := w.frames[thread], uint32(1)<<thread
	switch in.bar.reduce {
	case ptx.NoModifier:
		return
	case ptx.ModPopc:
		f.regs[in.bar.out][thread] = uint64(bar.count) //nolint:gosec // not negative
	case ptx.ModAnd:
		f.setPred(in.bar.out, maskIf(bar.count == bar.threads), bit)
	default:
		f.setPred(in.bar.out, maskIf(bar.count > 0), bit)
	}
	f.written(in, bit)
}

// waiter returns a thread that waits at a barrier, or nil.
func (b *block) waiter(bar *barrierState) *Place {
	if bar.warps == 0 {
		return nil
	}
	w := b.warps[next(bar.warps)]
	n := next(bar.waiting[w.index])
	p := b.place(w.pc[n], w.index*warpThreads+n)
	return &p
}

// deadlock returns the fault of a block in which every thread waits.
func (b *block) deadlock() error {
	var at *warp
	var thread int
	for _, w := range b.warps {
		if w.live != 0 && (at == nil || b.barrierOf(at, thread) < 0) {
			if n := next(w.live); at == nil || b.barrierOf(w, n) >= 0 {
				at, thread = w, n
			}
		}
	}
	at.at = at.pc[thread]
	at.fail(&Fault{Kind: BarrierDeadlock, Other: b.absent(at, thread), Detail: "all threads of the block wait"}, thread)
	return at.fault
}

// barrierOf returns the barrier that a thread waits at, or -1.
func (b *block) barrierOf(w *warp, thread int) int {
	for id := range b.barriers {
		if b.barriers[id].waiting[w.index]>>thread&1 != 0 {
			return id
		}
	}
	return -1
}

// absent returns a thread that waits elsewhere than the given one.
func (b *block) absent(at *warp, thread int) *Place {
	for _, w := range b.warps {
		for rest := w.live; rest != 0; rest &= rest - 1 {
			n := next(rest)
			if w.pc[n] != at.pc[thread] || b.barrierOf(w, n) != b.barrierOf(at, thread) {
				p := b.place(w.pc[n], w.index*warpThreads+n)
				return &p
			}
		}
	}
	return nil
}
