package plan

import (
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

const (
	int64Type = tensor.Int64
	warpLanes = 32
)

// rowwise writes a kernel that reduces rows.
func (w *writer) rowwise() {
	lanes := int(w.v.Lanes)
	thread := w.Special("tid.x")
	w.valid = code.Bool(true)
	w.begin, w.end = w.Constant(0), w.param(Cols, 0, 0)
	var row code.Value
	switch {
	case w.v.Turned:
		row = w.turned(thread)
	case w.v.Split:
		row = w.Special("ctaid.y")
		w.lane = thread
		w.begin = w.Mul(w.Index(w.Special("ctaid.x")), w.param(Chunk, 0, 0))
		w.end = w.Min(w.end, w.Add(w.begin, w.param(Chunk, 0, 0)))
	case lanes > warpLanes:
		row = w.Special("ctaid.x")
		w.lane = thread
	default:
		first := w.Op2(code.MulS32, w.Special("ctaid.x"), code.U32(uint32(w.v.BlockThreads()/lanes))) //nolint:gosec // small
		inner := code.U32(uint32(lanes))                                                              //nolint:gosec // small
		w.lane, row = w.Op2(code.RemU32, thread, inner), w.Op2(code.DivU32, thread, inner)
		row = w.Op2(code.AddS32, first, row)
		w.valid = w.Op2(code.LtU32, row, w.param(Rows, 0, 0))
		// Threads without a row stay for the shuffles of the others and read nothing.
		row = w.Op3(code.Select32, row, code.U32(0), w.valid)
		w.end = w.Op3(w.Pick(code.Select32, code.Select64), w.end, w.Constant(0), w.valid)
	}
	w.bases(w.Index(row))
	if w.v.Split {
		w.splitRow(row)
		return
	}
	for depth := 1; depth <= w.p.depth; depth++ {
		w.reduce(depth)
	}
	w.finish(w.Op2(code.AndPred, w.valid, w.Op2(code.EqS32, w.lane, code.U32(0))))
}

// at returns the reductions of a depth.
func (p *Program) at(depth int) (all []*reduction) {
	for _, r := range p.reductions {
		if r.depth == depth {
			all = append(all, r)
		}
	}
	return all
}

// hoist computes the row values that a node needs, before a loop does.
func (w *writer) hoist(n *expr.Node) {
	walk(n, func(n *expr.Node) (below bool) {
		if !(expr.Expr{Node: n}).Row() {
			return true
		}
		if n.Op != expr.OpConst {
			for _, row := range w.rows {
				row.value(n)
			}
		}
		return false
	})
}

// states of reductions, in variables.
type states [][2]code.Value

func (w *writer) begun(all []*reduction) states {
	s := make(states, len(all))
	for i, r := range all {
		first := r.identity()
		for part := range r.size() {
			s[i][part] = w.Variable(first[part])
		}
	}
	return s
}

func (w *writer) now(r *reduction, variables [2]code.Value) (s state) {
	for part := range r.size() {
		s[part] = w.Get(variables[part])
	}
	return s
}

func (w *writer) put(r *reduction, variables [2]code.Value, s state) {
	for part := range r.size() {
		w.Set(variables[part], s[part])
	}
}

// scan writes a loop over the row, or the block's part of it: over adjacent rows at once where a thread has several.
func (w *writer) scan(body func(all ...*batch)) {
	vector, lanes := int(w.v.Vector), int(w.v.Lanes)
	if w.v.Turned {
		w.scanTurned(body)
		return
	}
	if w.v.Kept {
		w.scanKept(body)
	} else {
		from := w.Add(w.begin, w.Mul(w.Index(w.lane), w.Constant(vector)))
		w.loop(from, w.end, w.Constant(lanes*vector), vector, func(col code.Value) { body(w.batch(col, vector)) })
	}
	if vector == 1 || w.v.Outer > 0 || w.v.Inner > 1 {
		return
	}
	// The rest of a row that is no multiple of the vector.
	length := w.Op2(w.Pick(code.SubS32, code.SubS64), w.end, w.begin)
	mask := ^(vector - 1)
	length = w.Op2(w.Pick(code.And32, code.And64), length, w.Constant(mask))
	from := w.Add(w.Add(w.begin, length), w.Index(w.lane))
	w.loop(from, w.end, w.Constant(lanes), 1, func(col code.Value) { body(w.batch(col, 1)) })
}

// accumulate returns the states of a thread after its elements, for the reductions of a depth and each of its rows.
func (w *writer) accumulate(all []*reduction) []states {
	for _, r := range all {
		w.hoist(r.of)
	}
	variables := make([]states, len(w.rows))
	for row := range variables {
		variables[row] = w.begun(all)
	}
	w.scan(func(batches ...*batch) {
		w.loadFirst(all, batches)
		for i, r := range all {
			found := make([][]state, len(w.rows))
			for _, b := range batches {
				for lane, e := range b.elements {
					row := w.rowOf(lane)
					found[row] = append(found[row], r.one(e.value(r.of), w.position(r, b, lane)))
				}
			}
			for row, of := range found {
				to := variables[row][i]
				w.put(r, to, r.absorb(w.rows[row], w.now(r, to), of))
			}
		}
	})
	return variables
}

// rowOf returns the index of the row of an element of a batch, among the rows of the thread.
func (w *writer) rowOf(lane int) int {
	if len(w.rows) > 1 {
		return lane
	}
	return 0
}

// position is the index of an element in its row, for those reductions that want it.
func (w *writer) position(r *reduction, b *batch, lane int) code.Value {
	if !r.pair() {
		return code.Value{}
	}
	col := b.col
	if len(w.rows) == 1 {
		col = w.Add(col, w.Constant(lane))
	}
	if w.v.Wide {
		return col
	}
	return w.Op1(code.U64FromU32, col)
}

// reduce computes the row values of a depth.
func (w *writer) reduce(depth int) {
	all := w.p.at(depth)
	if w.v.Kept {
		first, second := w.apart(all)
		w.reduceAll(first)
		w.reduceAll(second)
		return
	}
	w.reduceAll(all)
}

// reduceAll computes the row values of reductions that do not need each other.
func (w *writer) reduceAll(all []*reduction) {
	if len(all) == 0 {
		return
	}
	found := w.across(all, w.accumulate(all))
	for i, r := range all {
		w.keep(r, found[i])
	}
}

// keep makes the states of the thread's rows row values.
func (w *writer) keep(r *reduction, found []state) {
	for row, s := range found {
		for _, n := range r.results {
			w.rows[row].known[n] = r.result(n, s)
		}
	}
}

// across combines the states of the threads of a row, which reductions have in their variables: each thread has the results, of
// each reduction and row.
func (w *writer) across(all []*reduction, variables []states) [][]state {
	found := make([][]state, len(all))
	for i, r := range all {
		for row := range variables {
			found[i] = append(found[i], w.now(r, variables[row][i]))
		}
	}
	if !w.v.Turned {
		w.acrossLanes(all, found)
		return found
	}
	for i, r := range all {
		found[i] = w.acrossWarps(r, found[i])
	}
	return found
}

// acrossLanes is across for a row whose threads are neighbours: warps exchange the states of all reductions at one barrier.
func (w *writer) acrossLanes(all []*reduction, found [][]state) {
	lanes := int(w.v.Lanes)
	for i, r := range all {
		found[i][0] = w.shuffle(r, found[i][0], min(lanes, warpLanes))
	}
	if lanes <= warpLanes {
		return
	}
	warps := lanes / warpLanes
	from := make([]int, len(all)) // in shared memory
	for i, r := range all {
		from[i] = w.Reserve(r.size() * 8 * warps)
	}
	lane := w.Op2(code.And32, w.lane, code.U32(warpLanes-1))
	base := w.SharedBase()
	slot := func(i, part int, at code.Value) code.Value {
		offset := w.Op2(code.Shl32, at, code.U32(3))
		return w.Op2(code.AddS32, base, w.Op2(code.AddS32, offset, code.U32(uint32(from[i]+part*8*warps)))) //nolint:gosec // small
	}
	w.If(w.Op2(code.EqS32, lane, code.U32(0)), func() {
		warp := w.Op2(code.ShrU32, w.lane, code.U32(5))
		for i, r := range all {
			for part := range r.size() {
				w.Line("st.shared.b%d [%v], %v", bitsOf(r.class(part)), slot(i, part, warp), w.Register(found[i][0][part]))
			}
		}
	})
	w.Barrier()
	variables := w.begun(all)
	w.If(w.Op2(code.LtU32, lane, code.U32(uint32(warps))), func() { //nolint:gosec // small
		for i, r := range all {
			for part := range r.size() {
				w.Line("ld.shared.b%d %v, [%v]", bitsOf(r.class(part)), variables[i][part], slot(i, part, lane))
			}
		}
	})
	for i, r := range all {
		found[i][0] = w.shuffle(r, w.now(r, variables[i]), warpLanes)
	}
}

func bitsOf(c code.Class) int {
	if c == code.B64 {
		return 64
	}
	return 32
}

// shuffle combines the states of neighbouring threads of a warp.
func (w *writer) shuffle(r *reduction, s state, lanes int) state {
	for distance := lanes / 2; distance > 0; distance /= 2 {
		var other state
		for part := range r.size() {
			other[part] = w.exchanged(s[part], distance)
		}
		s = r.combine(w.row, s, other)
	}
	return s
}

// exchanged returns the value of the thread at a distance.
func (w *writer) exchanged(v code.Value, distance int) code.Value {
	one := func(v code.Value) code.Value {
		to := w.New(code.B32)
		w.Line("shfl.sync.bfly.b32 %v, %v, %d, 31, -1", to, w.Register(v), distance)
		return to
	}
	if v.Class == code.B64 {
		return w.Op2(code.U64FromHalves, one(w.Op1(code.U32FromU64, v)), one(w.Op1(code.U32FromHi, v)))
	}
	return one(v)
}

// finish stores the outputs, those with one element for a row where the condition holds.
func (w *writer) finish(first code.Value) {
	for i, n := range w.p.outputs {
		if w.p.Operands[w.p.Inputs+i].Row {
			for _, row := range w.rows {
				row.value(n)
			}
		} else {
			w.hoist(n)
		}
	}
	w.If(first, func() {
		for i, n := range w.p.outputs {
			if k := w.p.Inputs + i; w.p.Operands[k].Row {
				values := make([]code.Value, len(w.rows))
				for row, e := range w.rows {
					values[row] = e.value(n)
				}
				w.Store(n.Type, w.base[k], values...)
			}
		}
	})
	if w.p.elements {
		w.scan(func(all ...*batch) { w.outputs(all...) })
	}
}
