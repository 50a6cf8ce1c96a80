package code

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/tensor"
)

// access names the instructions that load and store a type.
type access struct {
	load, store string
	class       Class
}

func accessOf(t tensor.Type) access {
	switch t {
	case tensor.Bool, tensor.Uint8:
		return access{"u8", "u8", B32}
	case tensor.Int8:
		return access{"s8", "u8", B32}
	case tensor.Int16:
		return access{"s16", "u16", B32}
	case tensor.Float16:
		return access{"b16", "b16", B16}
	case tensor.BFloat16:
		return access{"u16", "u16", B32}
	case tensor.Int64, tensor.Float64:
		return access{"b64", "b64", B64}
	case tensor.Int32, tensor.Float32:
	}
	return access{"b32", "b32", B32}
}

// Load loads count adjacent elements from "global" or "shared" memory. It converts 16-bit floating-point types to float32.
func (w *Writer) Load(space string, t tensor.Type, address Value, count int) []Value {
	a := accessOf(t)
	all := make([]Value, count)
	for i := range all {
		all[i] = w.New(a.class)
	}
	Pieces(count, t.Size(), func(offset, from, to int) {
		suffix, registers := Vector(all[from:to])
		w.Line("ld.%s%s.%s %s, [%v+%d]", space, suffix, a.load, registers, address, offset)
	})
	for i, v := range all {
		switch t { //nolint:exhaustive // the others need no conversion
		case tensor.Float16:
			all[i] = w.Op1(F32FromF16, v)
		case tensor.BFloat16:
			all[i] = w.Op2(Shl32, v, U32(16))
		}
	}
	return all
}

// Store stores adjacent elements in global memory: float32 rounded to 16-bit floating-point types, and predicates as 0 or 1.
func (w *Writer) Store(t tensor.Type, address Value, values ...Value) {
	a := accessOf(t)
	all := make([]Value, len(values))
	for i, v := range values {
		switch {
		case v.Class == Pred:
			v = w.Op3(Select32, U32(1), U32(0), v)
		case t == tensor.Float16:
			v = w.Op1(F16FromF32, v)
		case t == tensor.BFloat16:
			v = BFloat16(w, v)
		}
		all[i] = w.Register(v)
	}
	Pieces(len(all), t.Size(), func(offset, from, to int) {
		suffix, registers := Vector(all[from:to])
		w.Line("st.global%s.%s [%v+%d], %s", suffix, a.store, address, offset, registers)
	})
}

// PieceLen returns how many of count elements of size bytes one instruction loads or stores: at most four, and 16 bytes.
func PieceLen(count, size int) int { return min(count, 4, 16/size) }

// Pieces calls each for every instruction that loads or stores count elements: with the offset in bytes and the range of
// elements.
func Pieces(count, size int, each func(offset, from, to int)) {
	step := PieceLen(count, size)
	for from := 0; from < count; from += step {
		each(from*size, from, from+step)
	}
}

// Vector returns registers as one operand, and the suffix of an instruction for as many.
func Vector(all []Value) (suffix, operand string) {
	if len(all) == 1 {
		return "", all[0].String()
	}
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.String()
	}
	return fmt.Sprintf(".v%d", len(all)), "{" + strings.Join(names, ", ") + "}"
}

// BFloat16 returns the bits of the nearest bfloat16 of a float32.
func BFloat16(m Machine, v Value) Value {
	odd := m.Op2(And32, m.Op2(ShrU32, v, U32(16)), U32(1))
	r := m.Op2(AddS32, m.Op2(AddS32, v, U32(0x7fff)), odd)
	r = m.Op2(ShrU32, r, U32(16))
	return m.Op3(Select32, U32(0x7fff), r, m.Op2(NanF32, v, v))
}
