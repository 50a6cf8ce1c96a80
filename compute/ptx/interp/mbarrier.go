package interp

import (
	"fmt"

	"github.com/go-vram/vram/compute/ptx"
)

// An mbarrier is 64 bits of shared memory: the pending arrivals of its phase, the arrivals of each later phase, the
// bytes in flight, and the number of the phase. The state is in the block's own bytes, so that the use of one without
// mbarrier.init is an uninitialised read.
//
// A phase ends when neither arrivals nor bytes are missing. A thread that waits for it is ordered after all that arrived.
const (
	mbarrierBytes    = 8
	mbarrierCount    = 1<<20 - 1 // the largest number of arrivals
	mbarrierNext     = 20        // where the arrivals of each further phase are
	mbarrierTx       = 40        // where the bytes are, in two's complement
	mbarrierTxBits   = 21
	mbarrierPhase    = 61
	mbarrierMaxBytes = 1<<20 - 1
)

// mbarrierState is an mbarrier, read.
type mbarrierState struct {
	pending, expected, tx int64
	phase                 uint64 // 3 bits
}

func mbarrierOf(v uint64) mbarrierState {
	return mbarrierState{
		pending: int64(v & mbarrierCount), expected: int64(v >> mbarrierNext & mbarrierCount),
		tx:    signExtend(v>>mbarrierTx, mbarrierTxBits, true),
		phase: v >> mbarrierPhase,
	}
}

func (s mbarrierState) bits() uint64 {
	return uint64(s.pending) | uint64(s.expected)<<mbarrierNext | //nolint:gosec // 20 bits each
		uint64(s.tx)&mask(mbarrierTxBits)<<mbarrierTx | s.phase<<mbarrierPhase //nolint:gosec // in two's complement
}

// lowerMbarrierCount translates mbarrier.pending_count.
func lowerMbarrierCount(c *lowering, i *ptx.Instruction) {
	d, a := c.out(&i.Operands[0]), c.in(&i.Operands[1], ptx.B64)
	c.to.compute = apply1(d, a, func(a uint64) uint64 { return a & mbarrierCount })
}

// mbarrierAt finds the mbarrier that a thread accesses, as an atomic access does, for the first time or again.
func mbarrierAt(w *warp, p *pointer, f *frame, n int, again bool) (a access, at []byte) {
	a = access{space: p.space, address: p.of(f, n), bytes: mbarrierBytes, thread: n, read: true, write: true, strong: true, again: again}
	at = w.memory.reach(&a)
	if at != nil && a.space != ptx.Shared {
		w.refuse(&a, OutOfBounds, "an mbarrier lies in shared memory")
		return a, nil
	}
	return a, at
}

// lowerMbarrierInit writes an mbarrier, or makes its memory free for other uses.
func lowerMbarrierInit(c *lowering, i *ptx.Instruction) {
	p := c.pointer(&i.Operands[0], i.Space())
	c.narrow(ptx.Shared, mbarrierBytes)
	count := c.constant(constant{})
	if len(i.Operands) > 1 {
		count = c.in(&i.Operands[1], ptx.B32)
	}
	isInit := i.Op == ptx.OpMbarrierInit
	c.to.run = func(w *warp, f *frame, m uint32) {
		for ; m != 0; m &= m - 1 {
			n := next(m)
			var value [mbarrierBytes]byte
			v := f.regs[count][n] & mask(32) //nolint:mnd // a number of 32 bits
			store(value[:], mbarrierBytes, mbarrierState{pending: int64(v & mbarrierCount), expected: int64(v & mbarrierCount)}.bits())
			a := access{space: p.space, address: p.of(f, n), bytes: mbarrierBytes, thread: n, write: true, value: value[:]}
			to := w.memory.reach(&a)
			switch {
			case to == nil:
				return
			case a.space != ptx.Shared:
				w.refuse(&a, OutOfBounds, "an mbarrier lies in shared memory")
				return
			case isInit && (v == 0 || v > mbarrierCount):
				misuse(w, n, fmt.Sprintf("an mbarrier for %d arrivals, and it is for 1 to %d", v, mbarrierCount))
				return
			}
			copy(to, a.value)
			delete(w.block.mbarriers, a.address)
		}
	}
}

// misuse reports an invalid use of an mbarrier.
func misuse(w *warp, thread int, detail string) {
	w.fail(&Fault{Kind: DivergentBarrier, Detail: detail}, thread)
}

// lowerMbarrierArrive translates arrivals, and counts of expected and delivered bytes.
func lowerMbarrierArrive(c *lowering, i *ptx.Instruction) {
	operands := i.Operands
	d := none
	if operands[0].Kind != ptx.OperandAddress {
		d, operands = c.out(&operands[0]), operands[1:]
	}
	p := c.pointer(&operands[0], i.Space())
	c.narrow(ptx.Shared, mbarrierBytes)
	count := c.constant(constant{value: 1})
	if len(operands) > 1 {
		count = c.in(&operands[1], ptx.B32)
	}
	step := mbarrierStep(i)
	isCopies, stays := i.Op == ptx.OpCpAsyncMbarrierArrive, i.Has(ptx.ModNoComplete)
	c.to.strong = true
	c.to.run = func(w *warp, f *frame, m uint32) {
		released := w.order.release()
		for ; m != 0; m &= m - 1 {
			n := next(m)
			if isCopies { // the copies of the thread arrive first
				if w.copies.deliver(n, 0, true); w.fault != nil {
					return
				}
				released.join(new(w.order.release()))
			}
			a, at := mbarrierAt(w, &p, f, n, false)
			if at == nil {
				return
			}
			old := load(at, mbarrierBytes)
			s := mbarrierOf(old)
			step(&s, int64(f.regs[count][n]&mask(32))) //nolint:gosec,mnd // a number of 32 bits
			order := w.block.orderOf(a.address)
			order.arriving.join(&released)
			switch {
			case s.pending < 0 || s.expected < 0:
				misuse(w, n, "more threads arrive at the mbarrier than its phase waits for")
				return
			case s.tx < -mbarrierMaxBytes || s.tx > mbarrierMaxBytes:
				misuse(w, n, fmt.Sprintf("more than %d bytes are on their way to the mbarrier", mbarrierMaxBytes))
				return
			case s.pending == 0 && s.tx == 0 && stays:
				misuse(w, n, "an arrival that is .noComplete ends the phase")
				return
			case s.pending == 0 && s.tx == 0:
				s.end(order)
			}
			store(at, mbarrierBytes, s.bits())
			if d != none {
				f.regs[d][n] = old
			}
		}
	}
}

// mbarrierStep returns the effect of an instruction on a phase; the number is one of arrivals or of bytes.
func mbarrierStep(i *ptx.Instruction) func(s *mbarrierState, n int64) {
	switch {
	case i.Op == ptx.OpMbarrierExpectTx:
		return func(s *mbarrierState, n int64) { s.tx += n }
	case i.Op == ptx.OpMbarrierCompleteTx:
		return func(s *mbarrierState, n int64) { s.tx -= n }
	case i.Op == ptx.OpCpAsyncMbarrierArrive && !i.Has(ptx.ModNoinc):
		return func(*mbarrierState, int64) {} // one arrival more is expected, and comes
	}
	drops, expects := i.Op == ptx.OpMbarrierArriveDrop, i.Has(ptx.ModExpectTx)
	return func(s *mbarrierState, n int64) {
		arrivals := n
		if expects {
			s.tx, arrivals = s.tx+n, 1
		}
		s.pending -= arrivals
		if drops {
			s.expected -= arrivals
		}
	}
}

// lowerMbarrierWait translates the test whether a phase has ended: the phase of a state that an arrival returned, or
// the last phase of a parity.
func lowerMbarrierWait(c *lowering, i *ptx.Instruction) {
	d := c.predOut(&i.Operands[0])
	p := c.pointer(&i.Operands[1], i.Space())
	c.narrow(ptx.Shared, mbarrierBytes)
	parity := i.Has(ptx.ModParity)
	of := ptx.B64
	if parity {
		of = ptx.B32
	}
	which := c.in(&i.Operands[2], of)
	if len(i.Operands) > 3 { //nolint:mnd // a time
		c.in(&i.Operands[3], ptx.B32)
	}
	c.to.strong = true
	c.to.run = func(w *warp, f *frame, m uint32) {
		var ended uint32
		for rest := m; rest != 0; rest &= rest - 1 {
			n := next(rest)
			test := poll{p.of(f, n), w.at, w.order.clock}
			a, at := mbarrierAt(w, &p, f, n, w.polls.last[n] == test)
			if at == nil {
				return
			}
			asked := f.regs[which][n]
			if !parity {
				asked = mbarrierOf(asked).phase
			}
			if !hasEnded(at, asked, parity) {
				if w.block.deliverBulk(a.address); !hasEnded(at, asked, parity) {
					w.polls.last[n] = test
					continue
				}
			}
			ended |= 1 << n
			done := &w.block.orderOf(a.address).done
			w.order.see(done)
			w.order.alone[n] = max(w.order.alone[n], done[w.index])
		}
		w.polls.test(ended != 0)
		f.setPred(d, ended, m)
	}
}

// hasEnded reports whether a phase of an mbarrier has ended: that with a number, or the last one of a parity.
func hasEnded(mbarrier []byte, asked uint64, parity bool) bool {
	phase := mbarrierOf(load(mbarrier, mbarrierBytes)).phase
	if parity {
		return phase&1 != asked&1
	}
	return phase != asked
}
