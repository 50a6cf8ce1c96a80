package plan

import (
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
)

// places are the addresses of an element of the row, by operand.
func (w *writer) places(col code.Value) (all [MaxOperands]code.Value, at []code.Value) {
	at = w.split(col, w.v.Inner, InnerShape)
	for k, o := range w.p.Operands {
		all[k] = w.base[k]
		if !o.Row {
			all[k] = w.place(k, at)
		}
	}
	return all, at
}

// place is the address of an operand's element with these indices.
func (w *writer) place(k int, at []code.Value) code.Value {
	offset := w.Constant(0)
	for d, i := range at {
		switch {
		case w.v.strided(uint8(k), uint8(d)): //nolint:gosec // small
			offset = w.Add(offset, w.Mul(i, w.param(InnerStride, k, d)))
		case w.v.Steps[k] != Fixed:
			offset = w.Add(offset, i)
		}
	}
	return w.address(k, w.base[k], offset)
}

// batch is elements that a thread takes at once.
type batch struct {
	elements []*element
	col      code.Value // of the first one
	places   [MaxOperands]code.Value
}

// batch begins so many neighbouring elements.
func (w *writer) batch(col code.Value, vector int) *batch {
	b := &batch{col: col}
	var at []code.Value
	b.places, at = w.places(col)
	loaded := map[int][]code.Value{}
	for lane := range vector {
		b.elements = append(b.elements, &element{
			Machine: w.Emitter, known: map[*expr.Node]code.Value{}, around: w.rows[w.rowOf(lane)],
			leaf: func(n *expr.Node) code.Value {
				switch n.Op { //nolint:exhaustive // leaves
				case expr.OpIndex:
					return w.elementIndex(at, n.At)
				case expr.OpCount:
					return w.rowLeaf(n)
				}
				if loaded[n.At] == nil {
					if w.same(n.At) {
						v := w.load("global", n.Type, b.places[n.At], 1)
						for range vector {
							loaded[n.At] = append(loaded[n.At], v[0])
						}
					} else {
						loaded[n.At] = w.load("global", n.Type, b.places[n.At], vector)
					}
				}
				return loaded[n.At][lane]
			},
		})
	}
	return b
}

// elementIndex is an index of an element, counted from the last dimension.
func (w *writer) elementIndex(at []code.Value, dim int) code.Value {
	if len(at)+dim < 0 {
		return code.U64(0)
	}
	if w.v.Wide {
		return at[len(at)+dim]
	}
	return w.Op1(code.U64FromU32, at[len(at)+dim])
}

// rowLeaf is a value that a row has without a reduction.
func (w *writer) rowLeaf(n *expr.Node) code.Value {
	cols := w.param(Cols, 0, 0)
	if !w.v.Wide {
		cols = w.Op1(code.U64FromU32, cols)
	}
	return w.row.cast(cols, int64Type, n.Type)
}

// outputs stores the outputs of batches that have an element for each element: all are computed first.
func (w *writer) outputs(batches ...*batch) {
	var stores []func()
	for _, b := range batches {
		for i, n := range w.p.outputs {
			k := w.p.Inputs + i
			if w.p.Operands[k].Row {
				continue
			}
			var values []code.Value
			for _, e := range b.elements {
				values = append(values, e.value(n))
			}
			stores = append(stores, func() { w.Store(w.p.Operands[k].Type, b.places[k], values...) })
		}
	}
	for _, store := range stores {
		store()
	}
}

// loop goes from a column on to the end: a body takes so many columns.
func (w *writer) loop(from, end, step code.Value, vector int, body func(col code.Value)) {
	w.loopOn(w.Variable(from), end, step, vector, body)
}

// loopOn is a loop from a variable on, which has the first column that was not taken afterwards.
func (w *writer) loopOn(col, end, step code.Value, vector int, body func(col code.Value)) {
	w.Loop(func(bottom string) {
		at := w.Get(col)
		w.Line("@!%v bra %s", w.Less(w.Add(at, w.Constant(vector-1)), end), bottom)
		body(at)
		w.Set(col, w.Add(at, step))
	})
}
