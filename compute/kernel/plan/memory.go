package plan

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// access is how elements of a type are loaded and stored.
type access struct {
	load, store string
	class       code.Class // of the register
}

func accessOf(t tensor.Type) access {
	switch t {
	case tensor.Bool, tensor.Uint8:
		return access{"u8", "u8", code.B32}
	case tensor.Int8:
		return access{"s8", "u8", code.B32}
	case tensor.Int16:
		return access{"s16", "u16", code.B32}
	case tensor.Float16:
		return access{"b16", "b16", code.B16}
	case tensor.BFloat16:
		return access{"u16", "u16", code.B32}
	case tensor.Int64, tensor.Float64:
		return access{"b64", "b64", code.B64}
	case tensor.Int32, tensor.Float32:
	}
	return access{"b32", "b32", code.B32}
}

// pieces calls a function for each instruction that loads or stores a vector: with the offset in bytes and the elements.
func pieces(vector, size int, each func(offset, from, count int)) {
	count := pieceOf(vector, size)
	for from := 0; from < vector; from += count {
		each(from*size, from, count)
	}
}

// list is registers as an operand, and the width of the vector as a suffix.
func list(all []code.Value) (suffix, operand string) {
	if len(all) == 1 {
		return "", all[0].String()
	}
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.String()
	}
	return fmt.Sprintf(".v%d", len(all)), "{" + strings.Join(names, ", ") + "}"
}

// load loads neighbours from an address of global or shared memory.
func (w *writer) load(space string, t tensor.Type, address code.Value, vector int) []code.Value {
	a := accessOf(t)
	all := make([]code.Value, vector)
	for i := range all {
		all[i] = w.New(a.class)
	}
	pieces(vector, t.Size(), func(offset, from, count int) {
		suffix, operand := list(all[from : from+count])
		w.Line("ld.%s%s.%s %s, [%v+%d]", space, suffix, a.load, operand, address, offset)
	})
	for i, v := range all {
		switch t { //nolint:exhaustive // those that are not as they are computed
		case tensor.Bool:
			all[i] = w.Op2(code.NeS32, v, code.U32(0))
		case tensor.Float16:
			all[i] = w.Op1(code.F32FromF16, v)
		case tensor.BFloat16:
			all[i] = w.Op2(code.Shl32, v, code.U32(16))
		}
	}
	return all
}

// store stores neighbours at an address.
func (w *writer) store(t tensor.Type, address code.Value, values []code.Value) {
	a := accessOf(t)
	all := make([]code.Value, len(values))
	for i, v := range values {
		switch t { //nolint:exhaustive // those that are not as they are computed
		case tensor.Bool:
			v = w.Op3(code.Select32, code.U32(1), code.U32(0), v)
		case tensor.Float16:
			v = w.Op1(code.F16FromF32, v)
		case tensor.BFloat16:
			v = w.row.bfloat16(v)
		}
		all[i] = w.Register(v)
	}
	pieces(len(all), t.Size(), func(offset, from, count int) {
		suffix, operand := list(all[from : from+count])
		w.Line("st.global%s.%s [%v+%d], %s", suffix, a.store, address, offset, operand)
	})
}
