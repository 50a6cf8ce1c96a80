package code

import (
	"fmt"
	"strconv"
)

// Writer writes a kernel: parameters, indices of 32 or 64 bits, and shared memory.
type Writer struct {
	*Emitter

	wide        bool // indices have 64 bits
	params      []byte
	paramCount  int
	sharedBytes int
	dynamic     bool // the block has dynamic shared memory
}

// Module returns the PTX of a module with a kernel of each name, in blocks of so many threads. write writes the body of a
// kernel.
func Module(names []string, blockThreads int, wide bool, write func(w *Writer, number int)) string {
	e := newEmitter()
	defer e.release()
	text := append(e.text[:0], ".version 7.0\n.target sm_70\n.address_size 64\n"...)
	for number, name := range names {
		e.reset()
		w := &Writer{Emitter: e, wide: wide}
		write(w, number)
		w.Line("ret")
		if w.dynamic {
			text = append(text, "\n.extern .shared .align 16 .b8 dynamic[];\n"...)
		}
		text = fmt.Appendf(text, "\n.visible .entry %s(\n%s\n)\n.maxntid %d, 1, 1\n{\n", name, w.params, blockThreads)
		if w.sharedBytes > 0 {
			text = fmt.Appendf(text, "\t.shared .align 8 .b8 shared[%d];\n", w.sharedBytes)
		}
		text = append(w.appendBody(text), "}\n"...)
	}
	e.text = text
	return string(text)
}

// Declare adds a parameter of 4 or 8 bytes, an integer or an address, and returns its name.
func (w *Writer) Declare(bytes int) string { return w.declare('u', bytes) }

func (w *Writer) declare(class byte, bytes int) string {
	name := "p" + strconv.Itoa(w.paramCount)
	if w.paramCount > 0 {
		w.params = append(w.params, ",\n"...)
	}
	w.params = fmt.Appendf(w.params, "\t.param .%c%d %s", class, 8*bytes, name)
	w.paramCount++
	return name
}

// Param adds a parameter and loads it.
func (w *Writer) Param(bytes int) Value { return w.LoadParam(w.Declare(bytes), bytes) }

// Float adds a parameter that is a floating-point number, and loads its bits.
func (w *Writer) Float(bytes int) Value { return w.LoadParam(w.declare('b', bytes), bytes) }

// LoadParam loads a parameter.
func (w *Writer) LoadParam(name string, bytes int) Value {
	class := B32
	if bytes == 8 {
		class = B64
	}
	to := w.New(class)
	w.Line("ld.param.u%d %v, [%s]", 8*bytes, to, name)
	return to
}

// Special loads a special register, as tid.x.
func (w *Writer) Special(name string) Value {
	to := w.New(B32)
	w.Line("mov.u32 %v, %%%s", to, name)
	return to
}

// Pick returns the operation for the width of indices.
func (w *Writer) Pick(narrow, wide Op) Op {
	if w.wide {
		return wide
	}
	return narrow
}

// Constant returns n, which is not negative, as an index.
func (w *Writer) Constant(n int) Value {
	if w.wide {
		return U64(uint64(n)) //nolint:gosec // not negative
	}
	return U32(uint32(n)) //nolint:gosec // not negative
}

// Index converts an unsigned number of 32 bits to an index.
func (w *Writer) Index(v Value) Value {
	if w.wide {
		return w.Op1(U64FromU32, v)
	}
	return v
}

// Narrow returns the low 32 bits of an index.
func (w *Writer) Narrow(v Value) Value {
	if w.wide {
		return w.Op1(U32FromU64, v)
	}
	return v
}

// Add adds indices.
func (w *Writer) Add(a, b Value) Value {
	switch {
	case a.Const && a.Bits == 0:
		return b
	case b.Const && b.Bits == 0:
		return a
	}
	return w.Op2(w.Pick(AddS32, AddS64), a, b)
}

// Sub subtracts indices.
func (w *Writer) Sub(a, b Value) Value { return w.Op2(w.Pick(SubS32, SubS64), a, b) }

// Mul multiplies indices.
func (w *Writer) Mul(a, b Value) Value { return w.Op2(w.Pick(MulS32, MulS64), a, b) }

// Div divides indices.
func (w *Writer) Div(a, b Value) Value { return w.Op2(w.Pick(DivU32, DivU64), a, b) }

// Less reports whether index a is less than b.
func (w *Writer) Less(a, b Value) Value { return w.Op2(w.Pick(LtU32, LtU64), a, b) }

// Min returns the smaller index.
func (w *Writer) Min(a, b Value) Value { return w.Op2(w.Pick(MinS32, MinS64), a, b) }

// Split returns the index in each dimension of a shape of the element with number at.
func (w *Writer) Split(at Value, shape []Value) []Value {
	all := make([]Value, len(shape))
	for d := len(shape) - 1; d > 0; d-- {
		q := w.Div(at, shape[d])
		all[d] = w.Sub(at, w.Mul(q, shape[d]))
		at = q
	}
	if len(all) > 0 {
		all[0] = at
	}
	return all
}

// Address returns the address of an element of some bytes, by its index from base.
func (w *Writer) Address(base, index Value, bytes int) Value {
	if index.Const && index.Bits == 0 {
		return base
	}
	if w.wide {
		return w.Op2(AddS64, base, w.Op2(MulS64, index, U64(uint64(bytes)))) //nolint:gosec // positive
	}
	return w.Op2(AddS64, base, w.Op2(MulWideS32, index, U32(uint32(bytes)))) //nolint:gosec // positive
}

// Loop writes a loop. The body may jump to the label end.
func (w *Writer) Loop(body func(end string)) {
	top, end := w.Label(), w.Label()
	w.Place(top)
	w.Scope(func() {
		body(end)
		w.Line("bra %s", top)
	})
	w.Place(end)
}

// Barrier waits for the threads of the block.
func (w *Writer) Barrier() { w.Line("bar.sync 0") }

// SharedBase returns the address of the block's shared memory.
func (w *Writer) SharedBase() Value {
	base := w.New(B32)
	w.Line("mov.u32 %v, shared", base)
	return base
}

// DynamicBase returns the address of the block's dynamic shared memory, whose size the launch has. One kernel of a module may
// have such.
func (w *Writer) DynamicBase() Value {
	w.dynamic = true
	base := w.New(B32)
	w.Line("mov.u32 %v, dynamic", base)
	return base
}

// Reserve adds bytes to the block's shared memory and returns their offset.
func (w *Writer) Reserve(bytes int) (offset int) {
	offset = w.sharedBytes
	w.sharedBytes += bytes
	return offset
}
