package plan

import (
	"github.com/go-vram/vram/kernel/expr"
	"github.com/go-vram/vram/kernel/internal/code"
)

// places are the addresses of an element of the row, by operand.
func (w *writer) places(col code.Value) (all [MaxOperands]code.Value, at []code.Value) {
	at = w.split(col, w.v.Inner, InnerShape)
	last := len(at) - 1
	for k, o := range w.p.Operands {
		all[k] = w.base[k]
		if o.Row {
			continue
		}
		offset := w.index.constant(0)
		for d, i := range at {
			switch {
			case d < last || w.v.Steps[k] == Any:
				offset = w.add(offset, w.mul(i, w.param(InnerStride, k, d)))
			case w.v.Steps[k] == Unit:
				offset = w.add(offset, i)
			}
		}
		all[k] = w.address(k, w.base[k], offset)
	}
	return all, at
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
			Machine: w.Emitter, known: map[*expr.Node]code.Value{}, around: w.row,
			leaf: func(n *expr.Node) code.Value {
				switch n.Op { //nolint:exhaustive // leaves
				case expr.OpIndex:
					return w.elementIndex(at, n.At)
				case expr.OpCount:
					return w.rowLeaf(n)
				}
				if loaded[n.At] == nil {
					if w.v.Steps[n.At] == Fixed {
						v := w.load(n.Type, b.places[n.At], 1)
						for range vector {
							loaded[n.At] = append(loaded[n.At], v[0])
						}
					} else {
						loaded[n.At] = w.load(n.Type, b.places[n.At], vector)
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

// outputs stores the outputs of batches that have an element for each element: all are computed before the first is stored, as the
// driver's compiler may not move a load over a store.
func (w *writer) outputs(all ...*batch) {
	values := make([]map[int][]code.Value, len(all))
	for at, b := range all {
		values[at] = map[int][]code.Value{}
		for i, n := range w.p.outputs {
			k := w.p.Inputs + i
			if w.p.Operands[k].Row {
				continue
			}
			for _, e := range b.elements {
				values[at][k] = append(values[at][k], e.value(n))
			}
		}
	}
	for at, b := range all {
		for k := range w.p.Operands {
			if found := values[at][k]; found != nil {
				w.store(w.p.Operands[k].Type, b.places[k], found)
			}
		}
	}
}

// loop goes from a column on to the end: a body takes so many columns.
func (w *writer) loop(from, end, step code.Value, vector int, body func(col code.Value)) {
	col := w.Variable(from)
	top, bottom := w.Label(), w.Label()
	w.Place(top)
	w.Scope(func() {
		at := w.Get(col)
		w.Line("@!%v bra %s", w.less(w.add(at, w.index.constant(vector-1)), end), bottom)
		body(at)
		w.Set(col, w.add(at, step))
		w.Line("bra %s", top)
	})
	w.Place(bottom)
}
