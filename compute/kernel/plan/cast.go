package plan

import (
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// cast converts a value from one element type to another. Of floating-point numbers integers are the nearest that the type has;
// integers wrap around.
func (e *element) cast(v code.Value, from, to tensor.Type) code.Value {
	if to == tensor.Bool {
		return e.nonzero(v, from)
	}
	source := familyOf(from)
	if source == pred {
		v, source = e.Op3(code.Select32, code.U32(1), code.U32(0), v), int32s
	}
	v = e.converted(v, source, familyOf(to))
	if source == float32s || source == float64s {
		return e.rounded(to, e.nearest(to, v))
	}
	return e.rounded(to, e.narrow(to, v))
}

// nearest is the number of a short integer type that is nearest to an integer of 32 bits, which is the nearest of these.
func (e *element) nearest(t tensor.Type, v code.Value) code.Value {
	switch t { //nolint:exhaustive // short ones
	case tensor.Uint8, tensor.Int8, tensor.Int16:
		return e.Op2(code.MaxS32, e.Op2(code.MinS32, v, limit(t, false)), limit(t, true))
	}
	return v
}

// nonzero reports whether a number is not 0.
func (e *element) nonzero(v code.Value, from tensor.Type) code.Value {
	switch familyOf(from) {
	case int32s:
		return e.Op2(code.NeS32, v, code.U32(0))
	case int64s:
		return e.Op2(code.NeS64, v, code.U64(0))
	case float32s:
		return e.Op2(code.NeF32, v, code.F32(0))
	case float64s:
		return e.Op2(code.NeF64, v, code.F64(0))
	case pred:
	}
	return v
}

// converted converts between families.
func (e *element) converted(v code.Value, from, to family) code.Value {
	if from == to {
		return v
	}
	ops := [5][5]code.Op{
		int32s:   {int64s: code.S64FromS32, float32s: code.F32FromS32, float64s: code.F64FromS32},
		int64s:   {int32s: code.U32FromU64, float32s: code.F32FromS64, float64s: code.F64FromS64},
		float32s: {int32s: code.S32FromF32, int64s: code.S64FromF32, float64s: code.F64FromF32},
		float64s: {int32s: code.S32FromF64, int64s: code.S64FromF64, float32s: code.F32FromF64},
	}
	r := e.Op1(ops[from][to], v)
	// A NaN is 0 also where the hardware has another number.
	switch {
	case to == int64s && from == float32s:
		return e.Op3(code.Select64, code.U64(0), r, e.Op2(code.NanF32, v, v))
	case to == int64s && from == float64s:
		return e.Op3(code.Select64, code.U64(0), r, e.Op2(code.NanF64, v, v))
	case to == int32s && from == float64s:
		return e.Op3(code.Select32, code.U32(0), r, e.Op2(code.NanF64, v, v))
	}
	return r
}

// rounded rounds a float32 to the numbers of a type of 16 bits.
func (e *element) rounded(to tensor.Type, v code.Value) code.Value {
	switch to { //nolint:exhaustive // the two
	case tensor.Float16:
		return e.Op1(code.F32FromF16, e.Op1(code.F16FromF32, v))
	case tensor.BFloat16:
		return e.Op2(code.Shl32, code.BFloat16(e, v), code.U32(16))
	}
	return v
}
