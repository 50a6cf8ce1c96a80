package plan

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/kernel/expr"
	"github.com/go-vram/vram/kernel/internal/code"
)

// Emit is the text of a variant: a kernel for each of Passes.
func (p *Program) Emit(v Variant) string {
	var text strings.Builder
	text.WriteString(".version 7.0\n.target sm_70\n.address_size 64\n")
	for pass, name := range p.Passes(v) {
		text.WriteString(p.emit(v, pass, name))
	}
	return text.String()
}

func (p *Program) emit(v Variant, pass int, name string) string {
	w := &writer{Emitter: code.NewEmitter(), p: p, v: v, pass: pass, index: index{v.Wide}, params: map[Param]code.Value{}}
	w.row = &element{Machine: w.Emitter, known: map[*expr.Node]code.Value{}, leaf: w.rowLeaf}
	params := p.Params(v)
	lines := make([]string, len(params))
	for i, param := range params {
		lines[i] = fmt.Sprintf("\t.param .u%d p%d", 8*param.Bytes(v), i)
		class := code.B32
		if param.Bytes(v) == 8 {
			class = code.B64
		}
		to := w.New(class)
		w.Line("ld.param.u%d %v, [p%d]", 8*param.Bytes(v), to, i)
		w.params[param] = to
	}
	w.kernel()
	w.Line("ret")
	var b strings.Builder
	fmt.Fprintf(&b, "\n.visible .entry %s(\n%s\n)\n.maxntid %d, 1, 1\n{\n", name, strings.Join(lines, ",\n"), v.BlockThreads())
	if w.sharedBytes > 0 {
		fmt.Fprintf(&b, "\t.shared .align 8 .b8 shared[%d];\n", w.sharedBytes)
	}
	b.WriteString(w.Body())
	b.WriteString("}\n")
	return b.String()
}

// writer writes one kernel.
type writer struct {
	*code.Emitter

	p      *Program
	v      Variant
	pass   int
	index  index
	params map[Param]code.Value

	row   *element                // row values
	lane  code.Value              // of the row, 32 bits
	valid code.Value              // the row is there
	base  [MaxOperands]code.Value // the address of the row's first element
	begin code.Value              // of the part of the row that this block has
	end   code.Value

	sharedBytes int
}

// index computes indices of 32 or 64 bits.
type index struct{ wide bool }

func (x index) pick(narrow, wide code.Op) code.Op {
	if x.wide {
		return wide
	}
	return narrow
}

func (x index) constant(n int) code.Value {
	if x.wide {
		return code.U64(uint64(n)) //nolint:gosec // positive
	}
	return code.U32(uint32(n)) //nolint:gosec // positive
}

func (w *writer) add(a, b code.Value) code.Value {
	switch {
	case a.Const && a.Bits == 0:
		return b
	case b.Const && b.Bits == 0:
		return a
	}
	return w.Op2(w.index.pick(code.AddS32, code.AddS64), a, b)
}

func (w *writer) mul(a, b code.Value) code.Value {
	return w.Op2(w.index.pick(code.MulS32, code.MulS64), a, b)
}

func (w *writer) less(a, b code.Value) code.Value {
	return w.Op2(w.index.pick(code.LtU32, code.LtU64), a, b)
}

func (w *writer) least(a, b code.Value) code.Value {
	return w.Op2(w.index.pick(code.MinS32, code.MinS64), a, b)
}

// indexOf is a number of 32 bits as an index.
func (w *writer) indexOf(v code.Value) code.Value {
	if w.v.Wide {
		return w.Op1(code.U64FromU32, v)
	}
	return v
}

// param is a parameter.
func (w *writer) param(kind ParamKind, operand, dim int) code.Value {
	return w.params[Param{kind, uint8(operand), uint8(dim)}] //nolint:gosec // small
}

// special is a register of the hardware.
func (w *writer) special(name string) code.Value {
	to := w.New(code.B32)
	w.Line("mov.u32 %v, %%%s", to, name)
	return to
}

// address is so many elements of an operand above an address.
func (w *writer) address(k int, from, offset code.Value) code.Value {
	size := w.p.Operands[k].Type.Size()
	if offset.Const && offset.Bits == 0 {
		return from
	}
	var bytes code.Value
	if w.v.Wide {
		bytes = w.Op2(code.MulS64, offset, code.U64(uint64(size))) //nolint:gosec // small
	} else {
		bytes = w.Op2(code.MulWideS32, offset, code.U32(uint32(size))) //nolint:gosec // small
	}
	return w.Op2(code.AddS64, from, bytes)
}

// split takes an index apart: the index in each dimension.
func (w *writer) split(at code.Value, dims uint8, shape ParamKind) []code.Value {
	all := make([]code.Value, dims)
	for d := int(dims) - 1; d > 0; d-- {
		n := w.param(shape, 0, d)
		q := w.Op2(w.index.pick(code.DivU32, code.DivU64), at, n)
		all[d] = w.Op2(w.index.pick(code.SubS32, code.SubS64), at, w.mul(q, n))
		at = q
	}
	if dims > 0 {
		all[0] = at
	}
	return all
}

// bases computes the address of the first element of a row for each operand.
func (w *writer) bases(row code.Value) {
	at := w.split(row, w.v.Outer, OuterShape)
	for k := range w.p.Operands {
		w.base[k] = w.param(Pointer, k, 0)
		if w.v.flat(uint8(k)) { //nolint:gosec // small
			continue
		}
		place := w.param(Start, k, 0)
		for d, i := range at {
			place = w.add(place, w.mul(i, w.param(OuterStride, k, d)))
		}
		w.base[k] = w.address(k, w.base[k], place)
	}
}

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

// outputs stores the outputs of a batch that have an element for each element.
func (w *writer) outputs(b *batch) {
	values := map[int][]code.Value{}
	for i, n := range w.p.outputs {
		k := w.p.Inputs + i
		if w.p.Operands[k].Row {
			continue
		}
		for _, e := range b.elements {
			values[k] = append(values[k], e.value(n))
		}
	}
	for k := range w.p.Operands {
		if all := values[k]; all != nil {
			w.store(w.p.Operands[k].Type, b.places[k], all)
		}
	}
}

// kernel writes the body.
func (w *writer) kernel() {
	if w.v.Lanes == 0 {
		w.elementwise()
		return
	}
	w.rowwise()
}

// elementwise writes a kernel with a thread for each vector.
func (w *writer) elementwise() {
	vector := int(w.v.Vector)
	thread := w.add(w.mul(w.indexOf(w.special("ctaid.x")), w.index.constant(w.v.BlockThreads())), w.indexOf(w.special("tid.x")))
	at := w.mul(thread, w.index.constant(vector))
	cols := w.param(Cols, 0, 0)
	w.bases(w.index.constant(0))
	whole := w.less(w.add(at, w.index.constant(vector-1)), cols)
	w.If(whole, func() { w.outputs(w.batch(at, vector)) })
	if vector > 1 && w.v.Outer == 0 && w.v.Inner == 1 {
		w.If(w.Op1(code.NotPred, whole), func() {
			w.loop(at, cols, w.index.constant(1), 1, func(col code.Value) { w.outputs(w.batch(col, 1)) })
		})
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
