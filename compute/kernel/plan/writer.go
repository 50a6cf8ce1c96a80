package plan

import "github.com/go-vram/vram/compute/kernel/internal/code"

// writer writes one kernel.
type writer struct {
	*code.Emitter

	p      *Program
	v      Variant
	pass   int
	index  index
	params map[Param]code.Value

	rows  []*element              // row values, of each row of a thread
	row   *element                // the first of them
	lane  code.Value              // of the row, 32 bits
	valid code.Value              // the row is there
	base  [MaxOperands]code.Value // the address of the row's first element
	begin code.Value              // of the part of the row that this block has
	end   code.Value

	kept         []*kept // of a thread that keeps its elements
	sharedBytes  int
	exchangeUsed bool // the warps of a turned kernel have used its shared memory
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
