package plan

import (
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
)

// A turned kernel reduces rows whose own elements are far apart, while neighbouring rows are neighbours in memory, as the
// columns of a matrix are. A block has a group of neighbouring rows: each thread of a warp some of them, which it loads in one
// vector, and each warp every so many elements of the rows. A thread loads several elements of its rows before it uses the
// first. Where the groups are too few to fill the device, several blocks share one, as they share a split row.

const (
	// turnedLanes are the warps of a block, by the rule.
	turnedLanes = 8
	// turnedRepeat is how many elements of its rows a thread loads at once, by the rule.
	turnedRepeat = 8
	// turnedBytes is the vector of a thread, by the rule: of two blocks on a multiprocessor 32 KiB are on their way, with the
	// repetitions. Larger vectors make fewer groups, and so more partial results.
	turnedBytes = 8
	// turnedBlocks are about half of the multiprocessors of the largest GPU: as many groups are shared where their rows have at
	// least turnedTurns turns of the loop. 5000 columns of 300 elements take 3.5 us on an H200, and shared among three blocks
	// 4.0.
	turnedBlocks = 64
	turnedTurns  = 8
	// maxTurnedSplits bounds the blocks of a group: 100 columns of 100,000 elements take 9.2 us by 121, and 9.7 by 261.
	maxTurnedSplits = 128
	// maxTurned bounds the product of the warps of a block and of the rows of a thread, whose states have at most 32 KiB of
	// shared memory so.
	maxTurned = 64
)

// groups is the number of groups of rows.
func groups(rows int, beside uint8) int {
	each := warpLanes * max(int(beside), 1)
	return (rows + each - 1) / each
}

// groups returns the number of groups of rows of a turned kernel.
func (g *Geometry) groups() int { return groups(g.Rows, g.Beside) }

// beside returns how many adjacent rows a thread may have, and which operands are the same for them.
func (p *Program) beside(g *Geometry, addresses []uint64) (most uint8, shared uint32) {
	last := int(g.Outer) - 1
	if last < 0 {
		return 0, 0
	}
	for k, o := range p.Operands {
		switch g.OuterStrides[k][last] {
		case 1:
		case 0:
			if o.Out {
				return 0, 0
			}
			shared |= 1 << k
		default:
			return 0, 0
		}
	}
	most = 8
	for most > 1 && !p.alignedBeside(g, int(most), shared, addresses) {
		most /= 2
	}
	return most, shared
}

// alignedBeside reports whether so many neighbouring rows can be read and written in vectors. The first element of an operand lies
// whole strides above the lowest one.
func (p *Program) alignedBeside(g *Geometry, rows int, shared uint32, addresses []uint64) bool {
	last := int(g.Outer) - 1
	if g.OuterShape[last]%rows != 0 {
		return false
	}
	for k, o := range p.Operands {
		if shared>>k&1 != 0 {
			continue
		}
		size := o.Type.Size()
		piece := code.PieceLen(rows, size) * size
		if addresses[k]%uint64(piece) != 0 { //nolint:gosec // positive
			return false
		}
		for d := range last {
			if g.OuterStrides[k][d]*size%piece != 0 {
				return false
			}
		}
		for d := range g.Inner {
			if !o.Row && g.InnerStrides[k][d]*size%piece != 0 {
				return false
			}
		}
	}
	return true
}

// rowsNear reports whether neighbouring rows are nearer to each other than neighbours in a row, in each input whose neighbours
// are apart.
func (p *Program) rowsNear(g *Geometry) bool {
	if !g.Strided || g.Outer == 0 {
		return false
	}
	for k := range p.Inputs {
		if g.Steps[k] == Any && distance(g.OuterStrides[k][g.Outer-1]) >= distance(g.InnerStrides[k][g.Inner-1]) {
			return false
		}
	}
	return true
}

// turn changes a schedule to a turned kernel.
func (p *Program) turn(g *Geometry, s *Schedule) {
	size := p.inputBytes()
	s.Turned, s.Lanes, s.Repeat, s.Beside = true, turnedLanes, turnedRepeat, max(g.MaxBeside, 1)
	for s.Beside > 1 && (int(s.Beside)*size > turnedBytes || g.Rows < warpLanes*int(s.Beside)) {
		s.Beside /= 2
	}
	n := groups(g.Rows, s.Beside)
	blocks := uint16(min(2*splitBlocks, maxTurnedSplits*n)) //nolint:gosec // small
	if g.shares(*s, blocks) && (n < turnedBlocks || g.Cols >= turnedTurns*turnedLanes*turnedRepeat) {
		s.Blocks = blocks
	}
}

// inputBytes is the size of an element of the largest input.
func (p *Program) inputBytes() (size int) {
	for _, o := range p.Operands[:p.Inputs] {
		size = max(size, o.Type.Size())
	}
	return size
}

// shares reports whether so many blocks may share the groups of rows, two or more for each, with two turns of the loop for
// each.
func (g *Geometry) shares(s Schedule, blocks uint16) bool {
	n := groups(g.Rows, s.Beside)
	return n > 0 && n <= min(MaxSplitRows, int(blocks)/2) && g.Cols >= 2*int(s.Lanes)*int(s.Repeat)
}

// splitTurned shares groups of rows among blocks: each has at least one turn of the loop.
func (g *Geometry) splitTurned() {
	each := int(g.Lanes) * max(int(g.Repeat), 1)
	g.Splits = max(min(int(g.Blocks)/max(g.groups(), 1), (g.Cols+each-1)/each), 1)
	g.Chunk = (g.Cols + g.Splits - 1) / g.Splits
	g.Chunk = (g.Chunk + each - 1) / each * each
	g.Splits = max((g.Cols+g.Chunk-1)/g.Chunk, 1)
}

// turned adds schedules of turned kernels: a thread loads 4, 8 or 16 bytes at once, or one element.
func (p *Program) turned(g *Geometry, add func(Schedule)) {
	for beside := max(g.MaxBeside, 1); beside > 0; beside /= 2 {
		if bytes := int(beside) * p.inputBytes(); beside > 1 && (bytes > 16 || g.Rows < warpLanes*int(beside)) || bytes < 4 && beside < g.MaxBeside {
			continue
		}
		for _, lanes := range []uint16{8, 16} {
			s := Schedule{Lanes: lanes, Block: lanes * warpLanes, Vector: 1, Repeat: 8, Turned: true, Beside: beside}
			if int(lanes)*int(beside) > maxTurned {
				continue
			}
			for _, blocks := range []uint16{splitBlocks, 2 * splitBlocks} {
				if s.Blocks = blocks; g.shares(s, blocks) {
					add(s)
				}
			}
			if g.Cols <= int(lanes)*maxCols {
				s.Blocks = 0
				add(s)
				s.Repeat = 4
				add(s)
			}
		}
	}
}

// turned places a thread of a turned kernel, and returns the first of its rows.
func (w *writer) turned(thread code.Value) (row code.Value) {
	beside := uint32(max(w.v.Beside, 1))
	w.Reserve(w.exchangeBytes())
	w.lane = w.Op2(code.ShrU32, thread, code.U32(5))
	row = w.Op2(code.MulS32, w.Special("ctaid.x"), code.U32(warpLanes*beside))
	row = w.Op2(code.AddS32, row, w.Op2(code.MulS32, w.Op2(code.And32, thread, code.U32(warpLanes-1)), code.U32(beside)))
	w.valid = w.Op2(code.LtU32, row, w.param(Rows, 0, 0))
	if w.v.Split {
		w.begin = w.Mul(w.Index(w.Special("ctaid.y")), w.param(Chunk, 0, 0))
		w.end = w.Min(w.end, w.Add(w.begin, w.param(Chunk, 0, 0)))
	}
	// Threads without a row stay for the barriers of the others and read nothing.
	row = w.Op3(code.Select32, row, code.U32(0), w.valid)
	w.end = w.Op3(w.Pick(code.Select32, code.Select64), w.end, w.Constant(0), w.valid)
	return row
}

// same reports whether an operand is the same for all elements of a batch.
func (w *writer) same(operand int) bool {
	if w.v.Beside > 1 {
		return w.v.Shared>>operand&1 != 0
	}
	return w.v.Steps[operand] == Fixed
}

// scanTurned is scan of a turned kernel: several elements of each row at once, then one by one.
func (w *writer) scanTurned(body func(all ...*batch)) {
	lanes, repeat, beside := int(w.v.Lanes), max(int(w.v.Repeat), 1), max(int(w.v.Beside), 1)
	col := w.Variable(w.Add(w.begin, w.Index(w.lane)))
	for _, count := range []int{repeat, 1} {
		w.loopOn(col, w.end, w.Constant(lanes*count), lanes*(count-1)+1, func(from code.Value) {
			all := make([]*batch, count)
			for i := range all {
				all[i] = w.batch(w.Add(from, w.Constant(i*lanes)), beside)
			}
			body(all...)
		})
		if repeat == 1 {
			return
		}
	}
}

// loadFirst loads the operands of reductions, for several batches, before the first of them is used.
func (w *writer) loadFirst(all []*reduction, batches []*batch) {
	if len(batches) == 1 {
		return
	}
	inputs := map[int]*expr.Node{}
	for _, r := range all {
		inputsOf(r.of, inputs)
	}
	for _, b := range batches {
		for operand := range w.p.Inputs {
			if n := inputs[operand]; n != nil {
				b.elements[0].value(n)
			}
		}
	}
}

// exchangeBytes is the shared memory in which the warps of a turned kernel exchange their states, one reduction after the
// other: a slot for each row of each thread. It is the first of the block's.
func (w *writer) exchangeBytes() (bytes int) {
	for _, r := range w.p.reductions {
		size := 0
		for part := range r.size() {
			size += bitsOf(r.class(part)) / 8
		}
		bytes = max(bytes, size*len(w.rows)*w.v.BlockThreads())
	}
	return bytes
}

// exchangeStart is where the parts of states begin there: a part of 64 bits is before one of 32.
func (w *writer) exchangeStart(r *reduction, part int) int {
	size, other := bitsOf(r.class(part)), 0
	if r.pair() {
		other = bitsOf(r.class(1 - part))
	}
	if other > size || other == size && part == 1 {
		return other / 8 * len(w.rows) * w.v.BlockThreads()
	}
	return 0
}

// acrossWarps combines the states of rows of which each warp of the block has one: in the order of the warps. Each thread has
// the results where something but the first warp needs them.
func (w *writer) acrossWarps(r *reduction, found []state) []state {
	if w.exchangeUsed {
		w.Barrier() // the last states have been read
	}
	w.exchangeUsed = true
	base, thread, threads := w.New(code.B32), w.Special("tid.x"), w.v.BlockThreads()
	w.Line("mov.u32 %v, shared", base)
	slot := func(part, row int, of code.Value) code.Value {
		size := bitsOf(r.class(part)) / 8
		at := w.Op2(code.MulS32, of, code.U32(uint32(size))) //nolint:gosec // small
		at = w.Op2(code.AddS32, base, at)
		return w.Op2(code.AddS32, at, code.U32(uint32(w.exchangeStart(r, part)+row*threads*size))) //nolint:gosec // small
	}
	for row, s := range found {
		for part := range r.size() {
			w.Line("st.shared.b%d [%v], %v", bitsOf(r.class(part)), slot(part, row, thread), w.Register(s[part]))
		}
	}
	w.Barrier()
	variables := make([][2]code.Value, len(found))
	for row := range found {
		variables[row] = w.begun([]*reduction{r})[0]
	}
	at := w.Variable(w.Op2(code.And32, thread, code.U32(warpLanes-1)))
	top, bottom := w.Label(), w.Label()
	if !w.p.elements && w.p.depth == 1 {
		w.Line("@%v bra %s", w.Op2(code.NeS32, w.lane, code.U32(0)), bottom)
	}
	w.Place(top)
	w.Scope(func() {
		now := w.Get(at)
		w.Line("@!%v bra %s", w.Op2(code.LtU32, now, code.U32(uint32(threads))), bottom) //nolint:gosec // small
		for row := range found {
			var other state
			for part := range r.size() {
				other[part] = w.New(r.class(part))
				w.Line("ld.shared.b%d %v, [%v]", bitsOf(r.class(part)), other[part], slot(part, row, now))
			}
			w.put(r, variables[row], r.combine(w.rows[row], w.now(r, variables[row]), other))
		}
		w.Set(at, w.Op2(code.AddS32, now, code.U32(warpLanes)))
		w.Line("bra %s", top)
	})
	w.Place(bottom)
	all := make([]state, len(found))
	for row := range found {
		all[row] = w.now(r, variables[row])
	}
	return all
}
