package plan

import (
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

// Code is Emit with names that do not depend on the expressions. Tables of measured variants have hashes of it: another way to
// name kernels would make their rows worthless otherwise.
func (p *Program) Code(v Variant) string {
	if p == nil {
		return ""
	}
	return p.text(v, p.passes(v, "kernel", ""))
}

func (p *Program) text(v Variant, names []string) string {
	return code.Module(names, v.BlockThreads(), v.Wide, func(to *code.Writer, pass int) { p.write(to, v, pass) })
}

// write writes the kernel of a pass.
func (p *Program) write(to *code.Writer, v Variant, pass int) {
	w := &writer{Writer: to, p: p, v: v, pass: pass, params: map[Param]code.Value{}}
	for range max(v.Beside, 1) {
		w.rows = append(w.rows, &element{Machine: w.Emitter, known: map[*expr.Node]code.Value{}, leaf: w.rowLeaf})
	}
	w.row = w.rows[0]
	for _, param := range p.Params(v) {
		w.params[param] = w.Param(param.Bytes(v))
	}
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
		thread := w.Add(w.Mul(w.Index(w.Special("ctaid.x")), w.Constant(w.v.BlockThreads())), w.Index(w.Special("tid.x")))
		at = w.Mul(thread, w.Constant(vector))
	} else {
		at = w.Add(w.Mul(w.Index(w.Special("ctaid.x")), w.Constant(far*repeat)),
			w.Mul(w.Index(w.Special("tid.x")), w.Constant(vector)))
	}
	cols := w.param(Cols, 0, 0)
	w.bases(w.Constant(0))
	whole := w.Less(w.Add(at, w.Constant(far*(repeat-1)+vector-1)), cols)
	w.If(whole, func() {
		all := make([]*batch, repeat)
		for i := range all {
			all[i] = w.batch(w.Add(at, w.Constant(i*far)), vector)
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
				from = w.Add(at, w.Constant(i*far))
				end = w.Min(cols, w.Add(from, w.Constant(vector)))
			}
			w.loop(from, end, w.Constant(1), 1, func(col code.Value) { w.outputs(w.batch(col, 1)) })
		}
	})
}
