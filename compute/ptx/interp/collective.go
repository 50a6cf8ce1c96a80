package interp

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// lowerActivemask translates activemask.
func lowerActivemask(c *lowering, i *ptx.Instruction) {
	d := c.out(&i.Operands[0])
	c.to.compute = func(f *frame, m uint32) {
		for rest := m; rest != 0; rest &= rest - 1 {
			f.regs[d][next(rest)] = uint64(m)
		}
	}
}

// lowerCollective translates instructions of the threads of a mask.
func lowerCollective(c *lowering, i *ptx.Instruction) {
	t := c.meets(&meeting{key: fmt.Sprintf("%v%v%v", i.Op, i.Mods, i.Types)})
	switch i.Op {
	case ptx.OpShfl, ptx.OpShflSync:
		lowerShuffle(c, i, t)
	case ptx.OpVote, ptx.OpVoteSync:
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

// lowerResults translates a result, and the predicate that may follow it.
func lowerResults(c *lowering, o *ptx.Operand, t *meeting) {
	if o.Kind == ptx.OperandPair {
		t.out, t.outPred = c.out(&o.Elements[0]), c.predOut(&o.Elements[1])
		return
	}
	t.out = c.out(o)
}

// lowerShuffle translates shfl and shfl.sync: the value of another thread, or the own one where that is out of range.
func lowerShuffle(c *lowering, i *ptx.Instruction, t *meeting) {
	lowerResults(c, &i.Operands[0], t)
	for n := 1; n < 4; n++ {
		t.inputs = append(t.inputs, c.in(&i.Operands[n], ptx.B32))
	}
	t.moves = true
	others := slices.Clone(t.inputs[1:])
	if lowerMask(c, i, t, 4); t.mask != none { //nolint:mnd // the last operand
		others = append(others, t.mask)
	}
	c.to.carries = carriesShuffle(others)
	mode := i.Mod(ptx.KindShuffle)
	t.meet = func(w *warp, members uint32) {
		for rest := members; rest != 0; rest &= rest - 1 {
			n := next(rest)
			from, inRange := shuffled(mode, n, int(w.meet.in[1][n]&31), int(w.meet.in[2][n])) //nolint:gosec,mnd // 5 bits; 32 bits
			w.meet.out[n] = w.meet.in[0][from]
			bit := uint32(1) << n
			w.meet.outPred = w.meet.outPred&^bit | maskIf(inRange)&bit
			if w.meet.from[n] = from; members>>from&1 == 0 { // it may be a value of an earlier block
				w.meet.from[n], w.meet.out[n] = none, 0
			}
			if (members&^w.meet.undefined)>>from&1 == 0 {
				w.meet.missing |= bit
			}
		}
	}
}

// shuffled returns the thread that a thread reads from; inRange is false where it reads its own value instead.
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

// lowerMask translates the mask of members. Without .sync there is none: those that execute the instruction at once are
// the members, as warps before sm_70 have it.
func lowerMask(c *lowering, i *ptx.Instruction, t *meeting, operand int) {
	if len(i.Operands) > operand {
		t.mask = c.in(&i.Operands[operand], ptx.B32)
		return
	}
	t.mask, c.to.flow = none, plain
	in := c.to
	c.to.run = func(w *warp, f *frame, m uint32) { meetAtOnce(w, in, f, m) }
}

// lowerVote translates vote and vote.sync.
func lowerVote(c *lowering, i *ptx.Instruction, t *meeting) {
	lowerMask(c, i, t, 2) //nolint:mnd // the last operand
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

// lowerMatch translates match.any.sync and match.all.sync.
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

// equals returns the members with a value.
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
