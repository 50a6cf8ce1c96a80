package plan

import (
	"fmt"

	"github.com/go-vram/vram/compute/kernel/internal/code"
)

const (
	// flagBytes of shared memory hold whether a block is the last one.
	flagBytes = 8
	// restoredAtOnce is how many partial results of its rows a thread of a turned kernel loads before it uses the first.
	restoredAtOnce = 4
)

// splitRow writes a pass over the part of a row that a block has.
func (w *writer) splitRow(row code.Value) {
	split := w.Special("ctaid.x")
	if w.v.Turned {
		split = w.Special("ctaid.y")
	}
	for depth := 1; depth <= w.pass; depth++ {
		w.restore(row, depth)
	}
	first := w.Op2(code.EqS32, w.lane, code.U32(0))
	if w.v.Turned {
		first = w.Op2(code.AndPred, first, w.valid)
	}
	if w.pass == w.p.depth {
		w.finish(w.Op2(code.AndPred, first, w.Op2(code.EqS32, split, code.U32(0))))
		return
	}
	all := w.p.at(w.pass + 1)
	found := w.across(all, w.accumulate(all))
	w.If(first, func() {
		for i, r := range all {
			for part := range r.size() {
				w.storePartial(r, part, row, split, found[i])
			}
		}
	})
	if w.p.ticketed() {
		w.lastBlock(row, first)
	}
}

// storePartial stores a block's partial result, of each row of the thread.
func (w *writer) storePartial(r *reduction, part int, row, split code.Value, found []state) {
	values := make([]code.Value, len(found))
	for i := range found {
		values[i] = w.Register(found[i][part])
	}
	bits, at := bitsOf(r.class(part)), w.partial(r, part, row, split)
	code.Pieces(len(values), bits/8, func(offset, from, to int) {
		suffix, operand := code.Vector(values[from:to])
		w.Line("st.global%s.b%d [%s], %s", suffix, bits, above(at, offset), operand)
	})
}

// loadPartial loads a block's partial results, of each row of the thread.
func (w *writer) loadPartial(r *reduction, row, split code.Value) []state {
	found := make([]state, len(w.rows))
	for part := range r.size() {
		values := make([]code.Value, len(found))
		for i := range found {
			values[i] = w.New(r.class(part))
			found[i][part] = values[i]
		}
		bits, at := bitsOf(r.class(part)), w.partial(r, part, row, split)
		code.Pieces(len(values), bits/8, func(offset, from, to int) {
			suffix, operand := code.Vector(values[from:to])
			w.Line("ld.volatile.global%s.b%d %s, [%s]", suffix, bits, operand, above(at, offset))
		})
	}
	return found
}

// above is an address so many bytes above another one.
func above(at code.Value, bytes int) string {
	if bytes == 0 {
		return at.String()
	}
	return fmt.Sprintf("%v+%d", at, bytes)
}

// partial returns the address of a block's partial result. Results of the blocks of a row are adjacent; in a turned kernel,
// results of rows are.
func (w *writer) partial(r *reduction, part int, row, split code.Value) code.Value {
	number := 0
	for i, other := range w.p.reductions {
		if other == r {
			number = 2*i + part
		}
	}
	rows, splits := w.param(Rows, 0, 0), w.param(Splits, 0, 0)
	if w.v.Turned {
		size := bitsOf(r.class(part)) / 8
		at := w.Op2(code.AddS32, w.Op2(code.MulS32, splits, code.U32(uint32(8/size*number))), split) //nolint:gosec // small
		at = w.Op2(code.AddS32, w.Op2(code.MulS32, at, rows), row)
		return w.Op2(code.AddS64, w.param(Scratch, 0, 0), w.Op2(code.MulWideU32, at, code.U32(uint32(size)))) //nolint:gosec // small
	}
	at := w.Op2(code.AddS32, w.Op2(code.MulS32, rows, code.U32(uint32(number))), row) //nolint:gosec // small
	at = w.Op2(code.AddS32, w.Op2(code.MulS32, at, splits), split)
	return w.Op2(code.AddS64, w.param(Scratch, 0, 0), w.Op2(code.MulWideU32, at, code.U32(8)))
}

// restore computes the row values of a depth from the partial results of all blocks.
func (w *writer) restore(row code.Value, depth int) {
	all := w.p.at(depth)
	variables := make([]states, len(w.rows))
	for i := range variables {
		variables[i] = w.begun(all)
	}
	splits := w.param(Splits, 0, 0)
	if w.v.Turned {
		splits = w.Op3(code.Select32, splits, code.U32(0), w.valid) // the first row's are not of this block
	}
	at := w.Variable(w.lane)
	counts := []int{1}
	if w.v.Turned {
		counts = []int{restoredAtOnce, 1}
	}
	for _, count := range counts {
		w.restoreSome(all, variables, row, at, splits, count)
	}
	found := w.across(all, variables)
	for i, r := range all {
		w.keep(r, found[i])
	}
}

// restoreSome combines partial results from a number on, so many at once.
func (w *writer) restoreSome(all []*reduction, variables []states, row, from, splits code.Value, count int) {
	lanes := int(w.v.Lanes)
	step := func(at code.Value, n int) code.Value {
		if n == 0 {
			return at
		}
		return w.Op2(code.AddS32, at, code.U32(uint32(n*lanes))) //nolint:gosec // small
	}
	w.Loop(func(bottom string) {
		at := w.Get(from)
		w.Line("@!%v bra %s", w.Op2(code.LtU32, step(at, count-1), splits), bottom)
		for i, r := range all {
			found := make([][]state, count)
			for n := range found {
				found[n] = w.loadPartial(r, row, step(at, n))
			}
			for _, states := range found {
				for own, s := range states {
					to := variables[own][i]
					w.put(r, to, r.combine(w.rows[own], w.now(r, to), s))
				}
			}
		}
		w.Set(from, step(at, count))
	})
}

// lastBlock ends all blocks of the row but the last one to come here, which makes the row values.
func (w *writer) lastBlock(row, first code.Value) {
	flag := fmt.Sprintf("[shared+%d]", w.Reserve(flagBytes))
	number, one := row, first
	if w.v.Turned { // of the block's group of rows: the first warp has stored something
		number, one = w.Special("ctaid.x"), w.Op2(code.EqS32, w.Special("tid.x"), code.U32(0))
		w.Barrier()
	}
	ticket := w.Op2(code.AddS64, w.param(Tickets, 0, 0), w.Op2(code.MulWideU32, number, code.U32(4)))
	w.If(one, func() {
		before := w.New(code.B32)
		// It releases the block's partial results and acquires the other blocks', for all threads: there is a barrier before it
		// and one after.
		w.Line("atom.acq_rel.gpu.global.add.u32 %v, [%v], 1", before, ticket)
		w.Line("st.shared.b32 %s, %v", flag, before)
	})
	w.Barrier()
	before := w.New(code.B32)
	w.Line("ld.shared.b32 %v, %s", before, flag)
	last := w.Op2(code.EqS32, before, w.Op2(code.SubS32, w.param(Splits, 0, 0), code.U32(1)))
	w.If(last, func() {
		w.restore(row, 1)
		w.finish(first)
		w.If(one, func() { w.Line("st.global.b32 [%v], %v", ticket, w.Register(code.U32(0))) })
	})
}
