package plan

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
)

// Emit is the text of a variant: a kernel for each of Passes.
func (p *Program) Emit(v Variant) string {
	if p == nil {
		return ""
	}
	return p.text(v, p.Passes(v))
}

// Code is Emit with names that do not depend on the expressions. Tables of measured variants have hashes of it: another way to name
// kernels would make their rows worthless otherwise.
func (p *Program) Code(v Variant) string {
	if p == nil {
		return ""
	}
	return p.text(v, p.passes(v, "kernel", ""))
}

func (p *Program) text(v Variant, names []string) string {
	e := code.NewEmitter()
	defer e.Release()
	text := append(e.Text[:0], ".version 7.0\n.target sm_70\n.address_size 64\n"...)
	for pass, name := range names {
		e.Reset()
		text = p.emit(e, text, v, pass, name)
	}
	e.Text = text
	return string(text)
}

// emit adds the text of a pass.
func (p *Program) emit(e *code.Emitter, text []byte, v Variant, pass int, name string) []byte {
	w := &writer{Emitter: e, p: p, v: v, pass: pass, index: index{v.Wide}, params: map[Param]code.Value{}}
	for range max(v.Beside, 1) {
		w.rows = append(w.rows, &element{Machine: w.Emitter, known: map[*expr.Node]code.Value{}, leaf: w.rowLeaf})
	}
	w.row = w.rows[0]
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
	text = fmt.Appendf(text, "\n.visible .entry %s(\n%s\n)\n.maxntid %d, 1, 1\n{\n", name, strings.Join(lines, ",\n"), v.BlockThreads())
	if w.sharedBytes > 0 {
		text = fmt.Appendf(text, "\t.shared .align 8 .b8 shared[%d];\n", w.sharedBytes)
	}
	return append(w.AppendBody(text), "}\n"...)
}

// kernel writes the body.
func (w *writer) kernel() {
	switch {
	case w.v.Tile > 0:
		w.tiled()
	case w.v.Lanes == 0:
		w.elementwise()
	default:
		w.rowwise()
	}
}

// elementwise writes a kernel with a thread for each vector, or for several that are a block's vectors apart.
func (w *writer) elementwise() {
	vector, repeat := int(w.v.Vector), max(int(w.v.Repeat), 1)
	far := w.v.BlockThreads() * vector
	var at code.Value
	if repeat == 1 {
		thread := w.add(w.mul(w.indexOf(w.special("ctaid.x")), w.index.constant(w.v.BlockThreads())), w.indexOf(w.special("tid.x")))
		at = w.mul(thread, w.index.constant(vector))
	} else {
		at = w.add(w.mul(w.indexOf(w.special("ctaid.x")), w.index.constant(far*repeat)),
			w.mul(w.indexOf(w.special("tid.x")), w.index.constant(vector)))
	}
	cols := w.param(Cols, 0, 0)
	w.bases(w.index.constant(0))
	whole := w.less(w.add(at, w.index.constant(far*(repeat-1)+vector-1)), cols)
	w.If(whole, func() {
		all := make([]*batch, repeat)
		for i := range all {
			all[i] = w.batch(w.add(at, w.index.constant(i*far)), vector)
		}
		w.outputs(all...)
	})
	flat := w.v.Outer == 0 && w.v.Inner == 1
	if repeat == 1 && (vector == 1 || !flat) {
		return // the elements are a multiple of the vector, as the length of the last dimension is
	}
	w.If(w.Op1(code.NotPred, whole), func() {
		for i := range repeat {
			from, end := at, cols
			if repeat > 1 {
				from = w.add(at, w.index.constant(i*far))
				end = w.least(cols, w.add(from, w.index.constant(vector)))
			}
			w.loop(from, end, w.index.constant(1), 1, func(col code.Value) { w.outputs(w.batch(col, 1)) })
		}
	})
}
