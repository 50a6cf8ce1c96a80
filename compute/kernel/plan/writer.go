package plan

import (
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// writer writes one kernel.
type writer struct {
	*code.Writer

	p      *Program
	v      Variant
	pass   int
	params map[Param]code.Value

	rows  []*element              // row values, of each row of a thread
	row   *element                // the first of them
	lane  code.Value              // of the row, 32 bits
	valid code.Value              // the row is there
	base  [MaxOperands]code.Value // the address of the row's first element
	begin code.Value              // of the part of the row that this block has
	end   code.Value

	kept         []*kept // of a thread that keeps its elements
	exchangeUsed bool    // the warps of a turned kernel have used its shared memory
}

// param is a parameter.
func (w *writer) param(kind ParamKind, operand, dim int) code.Value {
	return w.params[Param{kind, uint8(operand), uint8(dim)}] //nolint:gosec // small
}

// split returns the index in each dimension of the element with number at.
func (w *writer) split(at code.Value, dims uint8, shape ParamKind) []code.Value {
	lengths := make([]code.Value, dims)
	for d := range lengths {
		lengths[d] = w.param(shape, 0, d)
	}
	return w.Split(at, lengths)
}

// address is so many elements of an operand above an address.
func (w *writer) address(k int, from, offset code.Value) code.Value {
	return w.Address(from, offset, w.p.Operands[k].Type.Size())
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
			place = w.Add(place, w.Mul(i, w.param(OuterStride, k, d)))
		}
		w.base[k] = w.address(k, w.base[k], place)
	}
}

// load loads adjacent elements from global or shared memory as the values that are computed with: a bool as a predicate.
func (w *writer) load(space string, t tensor.Type, address code.Value, vector int) []code.Value {
	all := w.Load(space, t, address, vector)
	if t == tensor.Bool {
		for i, v := range all {
			all[i] = w.Op2(code.NeS32, v, code.U32(0))
		}
	}
	return all
}
