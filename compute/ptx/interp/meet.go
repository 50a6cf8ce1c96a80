package interp

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

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

// meetings are the threads of a warp that wait for others of it, with their operands and results.
type meetings struct {
	waiting uint32
	masks   [warpThreads]uint32
	in      [3]lanes
	pred    uint32
	out     lanes
	outPred uint32
	missing uint32           // threads whose result is undefined
	from    [warpThreads]int // whose value it is; none of a thread that takes no part

	undefined uint32 // threads whose value, the first operand, is undefined, its undefined bits, and why
	holes     lanes
	causes    [warpThreads]cause
}

// arrive stops threads at an instruction of the warp until all have come.
func (w *warp) arrive(in *instruction, f *frame, m uint32) {
	t := in.meet
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
		w.bring(f, t.inputs[0], m)
	}
	w.meet.pred = w.meet.pred&^m | f.predMask(t.pred, t.negated)&m
	w.meet.waiting |= m
	w.waits |= m
	w.meetAll(m)
}

// bring notes threads whose value for a shuffle is undefined.
func (w *warp) bring(f *frame, slot int, m uint32) {
	missing := m &^ f.defined[slot]
	w.meet.undefined |= missing
	for ; missing != 0; missing &= missing - 1 {
		n := next(missing)
		w.meet.holes[n], w.meet.causes[n] = f.undefinedBits(slot, n), f.causeOf(slot, n, false)
	}
}

// meetAgain looks at threads that wait after others have ended.
func (w *warp) meetAgain() { w.meetAll(w.meet.waiting) }

// meetAll looks at each group among the threads of m: threads that arrive together may have different masks.
func (w *warp) meetAll(m uint32) {
	for m &= w.meet.waiting; m != 0; m &= w.meet.waiting {
		one := next(m)
		mask, at := w.meet.masks[one], w.pc[one]
		w.meetAt(one)
		for rest := m; rest != 0; rest &= rest - 1 { // the outcome is the same for all threads of the group
			if n := next(rest); w.meet.masks[n] == mask && w.pc[n] == at {
				m &^= 1 << n
			}
		}
	}
}

// meetAt lets the threads go that wait for the same as one, if all have come.
func (w *warp) meetAt(one int) {
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
	w.conclude(t, members, one)
}

// conclude executes an instruction of the warp for those that have met.
func (w *warp) conclude(t *meeting, members uint32, one int) {
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
		w.joinThreads(members)
	}
	w.at = at
	for ; members != 0; members &= members - 1 {
		n := next(members)
		w.take(&w.block.kernel.code[w.pc[n]], n)
		w.pc[n]++
	}
}

// take writes the result in a thread.
func (w *warp) take(in *instruction, n int) {
	f, bit := w.frames[n], uint32(1)<<n
	f.written(in, bit)
	if in.meet.out != none {
		f.regs[in.meet.out][n] = w.meet.out[n]
		if w.meet.missing&bit != 0 && !w.block.run.ignored[Uninitialised] {
			w.loseShuffled(in, f, n)
		}
	}
	if in.meet.outPred != none {
		f.setPred(in.meet.outPred, w.meet.outPred, bit)
	}
}

// loseShuffled makes the result of a shuffle undefined as the value that was read is. A thread that takes no part has none.
func (w *warp) loseShuffled(in *instruction, f *frame, n int) {
	if from := w.meet.from[n]; from != none {
		f.lose(in.meet.out, n, w.meet.holes[from], w.meet.causes[from])
		return
	}
	f.lose(in.meet.out, n, ^uint64(0), causeInstruction|cause(w.pc[n])) //nolint:gosec // not negative
}

// meets makes the current instruction a meeting of threads.
func (c *lowering) meets(t *meeting) *meeting {
	t.pred, t.out, t.outPred = none, none, none
	c.to.flow, c.to.meet = sync, t
	return t
}

// wholeWarp makes the current instruction one of all threads of a warp.
func (c *lowering) wholeWarp() *meeting { return c.meets(&meeting{mask: none, whole: true}) }

// lowerActivemask translates activemask.
func lowerActivemask(c *lowering, i *ptx.Instruction) {
	d := c.out(&i.Operands[0])
	c.to.run = func(_ *warp, f *frame, m uint32) {
		for rest := m; rest != 0; rest &= rest - 1 {
			f.regs[d][next(rest)] = uint64(m)
		}
	}
}

// lowerCollective translates instructions of the threads of a mask.
func lowerCollective(c *lowering, i *ptx.Instruction) {
	t := c.meets(&meeting{key: fmt.Sprintf("%v%v%v", i.Op, i.Mods, i.Types)})
	switch i.Op {
	case ptx.OpShflSync:
		lowerShuffle(c, i, t)
	case ptx.OpVoteSync:
		lowerVote(c, i, t)
	case ptx.OpMatch:
		lowerMatch(c, i, t)
	case ptx.OpReduxSync:
		t.out = c.out(&i.Operands[0])
		t.inputs = []int{c.in(&i.Operands[1], i.Type(0))}
		t.mask = c.in(&i.Operands[2], ptx.B32)
		t.meet = reduction(i)
	default: // bar.warp.sync
		t.mask, t.orders = c.in(&i.Operands[0], ptx.B32), true
	}
}

// results compiles a result, maybe with a predicate beside it.
func lowerResults(c *lowering, o *ptx.Operand, t *meeting) {
	if o.Kind == ptx.OperandPair {
		t.out, t.outPred = c.out(&o.Elements[0]), c.predOut(&o.Elements[1])
		return
	}
	t.out = c.out(o)
}

// shuffle is shfl.sync: the value of another thread, or the own one where that is out of range.
func lowerShuffle(c *lowering, i *ptx.Instruction, t *meeting) {
	lowerResults(c, &i.Operands[0], t)
	for n := 1; n < 4; n++ {
		t.inputs = append(t.inputs, c.in(&i.Operands[n], ptx.B32))
	}
	t.mask = c.in(&i.Operands[4], ptx.B32)
	t.moves = true
	c.to.carries = carriesShuffle(slices.Concat(t.inputs[1:], []int{t.mask}))
	mode := i.Mod(ptx.KindShuffle)
	t.meet = func(w *warp, members uint32) {
		for rest := members; rest != 0; rest &= rest - 1 {
			n := next(rest)
			from, inRange := shuffled(mode, n, int(w.meet.in[1][n]&31), int(w.meet.in[2][n])) //nolint:gosec,mnd // 5 bits; 32 bits
			w.meet.out[n] = w.meet.in[0][from]
			bit := uint32(1) << n
			w.meet.outPred = w.meet.outPred&^bit | maskIf(inRange)&bit
			if w.meet.from[n] = from; members>>from&1 == 0 {
				w.meet.from[n] = none
			}
			if (members&^w.meet.undefined)>>from&1 == 0 {
				w.meet.missing |= bit
			}
		}
	}
}

// shuffled is the thread that a thread reads from; inRange is false where it reads its own value instead.
func shuffled(mode ptx.Modifier, lane, b, c int) (from int, inRange bool) {
	segment, clamp := c>>8&31, c&31       //nolint:mnd // 5 bits each
	least := lane & segment               // the first thread of the segment
	most := lane&segment | clamp&^segment // the last one
	switch mode {
	case ptx.ModUp:
		from = lane - b
		inRange = from >= most // the limit is at the other end
	case ptx.ModDown:
		from = lane + b
		inRange = from <= most
	case ptx.ModBfly:
		from = lane ^ b
		inRange = from <= most
	default:
		from = least | b&^segment
		inRange = from <= most
	}
	if !inRange {
		from = lane
	}
	return from, inRange
}

// vote is vote.sync.
func lowerVote(c *lowering, i *ptx.Instruction, t *meeting) {
	t.mask = c.in(&i.Operands[2], ptx.B32)
	t.pred, t.negated = c.predIn(&i.Operands[1])
	mode := i.Mod(ptx.KindVote)
	if mode == ptx.ModBallot {
		t.out = c.out(&i.Operands[0])
	} else {
		t.outPred = c.predOut(&i.Operands[0])
	}
	t.meet = func(w *warp, members uint32) {
		yes := w.meet.pred & members
		for n := range w.meet.out {
			w.meet.out[n] = uint64(yes)
		}
		switch mode {
		case ptx.ModAll:
			w.meet.outPred = maskIf(yes == members)
		case ptx.ModAny:
			w.meet.outPred = maskIf(yes != 0)
		default: // uni
			w.meet.outPred = maskIf(yes == members || yes == 0)
		}
	}
}

// match is match.any.sync and match.all.sync.
func lowerMatch(c *lowering, i *ptx.Instruction, t *meeting) {
	lowerResults(c, &i.Operands[0], t)
	t.inputs = []int{c.in(&i.Operands[1], i.Type(0))}
	t.mask = c.in(&i.Operands[2], ptx.B32)
	all := i.Has(ptx.ModAll)
	t.meet = func(w *warp, members uint32) {
		first := w.meet.in[0][next(members)]
		same := true
		for rest := members; rest != 0; rest &= rest - 1 {
			same = same && w.meet.in[0][next(rest)] == first
		}
		w.meet.outPred = maskIf(same)
		for rest := members; rest != 0; rest &= rest - 1 {
			n := next(rest)
			switch {
			case !all:
				w.meet.out[n] = uint64(w.equals(members, w.meet.in[0][n]))
			case same:
				w.meet.out[n] = uint64(members)
			default:
				w.meet.out[n] = 0
			}
		}
	}
}

// equals are the members with a value.
func (w *warp) equals(members uint32, value uint64) (equal uint32) {
	for rest := members; rest != 0; rest &= rest - 1 {
		if n := next(rest); w.meet.in[0][n] == value {
			equal |= 1 << n
		}
	}
	return equal
}

// reduction is redux.sync.
func reduction(i *ptx.Instruction) func(w *warp, members uint32) {
	fn := atomicFunction(i)
	return func(w *warp, members uint32) {
		r := w.meet.in[0][bits.TrailingZeros32(members)&(warpThreads-1)]
		for rest := members & (members - 1); rest != 0; rest &= rest - 1 {
			r = fn(r, w.meet.in[0][next(rest)], 0) & mask(32) //nolint:mnd // redux has no other type
		}
		for n := range w.meet.out {
			w.meet.out[n] = r
		}
	}
}
