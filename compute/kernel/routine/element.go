package routine

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// access is how elements of a type are loaded, stored and added.
type access struct {
	load, store string
	class       code.Class
	add         code.Op
}

func accessOf(t tensor.Type) access {
	switch t {
	case tensor.Bool, tensor.Uint8:
		return access{"u8", "u8", code.B32, code.AddS32}
	case tensor.Int8:
		return access{"s8", "u8", code.B32, code.AddS32}
	case tensor.Int16:
		return access{"s16", "u16", code.B32, code.AddS32}
	case tensor.Int64:
		return access{"b64", "b64", code.B64, code.AddS64}
	case tensor.Float16:
		return access{"b16", "b16", code.B16, code.AddF32}
	case tensor.BFloat16:
		return access{"u16", "u16", code.B32, code.AddF32}
	case tensor.Float64:
		return access{"b64", "b64", code.B64, code.AddF64}
	case tensor.Float32:
		return access{"b32", "b32", code.B32, code.AddF32}
	case tensor.Int32:
	}
	return access{"b32", "b32", code.B32, code.AddS32}
}

// load loads neighbours: elements of 16 bits as float32.
func (w *writer) load(t tensor.Type, address value, count int) []value {
	a := accessOf(t)
	all := make([]value, count)
	for i := range all {
		all[i] = w.New(a.class)
	}
	pieces(t, count, func(offset, from, to int) {
		suffix, names := list(all[from:to])
		w.Line("ld.global%s.%s %s, [%v+%d]", suffix, a.load, names, address, offset)
	})
	for i, v := range all {
		switch t { //nolint:exhaustive // those that are not as they are computed
		case tensor.Float16:
			all[i] = w.Op1(code.F32FromF16, v)
		case tensor.BFloat16:
			all[i] = w.Op2(code.Shl32, v, code.U32(16))
		}
	}
	return all
}

// store stores neighbours, rounded to the type.
func (w *writer) store(t tensor.Type, address value, values ...value) {
	a := accessOf(t)
	all := make([]value, len(values))
	for i, v := range values {
		switch t { //nolint:exhaustive // those that are not as they are computed
		case tensor.Float16:
			v = w.Op1(code.F16FromF32, v)
		case tensor.BFloat16:
			v = bfloat16(w, v)
		}
		all[i] = w.Register(v)
	}
	pieces(t, len(all), func(offset, from, to int) {
		suffix, names := list(all[from:to])
		w.Line("st.global%s.%s [%v+%d], %s", suffix, a.store, address, offset, names)
	})
}

// pieces calls a function for each instruction that loads or stores neighbours: 16 bytes at most.
func pieces(t tensor.Type, count int, each func(offset, from, to int)) {
	size := t.Size()
	step := min(count, vectorBytes/size, 4)
	for from := 0; from < count; from += step {
		each(from*size, from, from+step)
	}
}

const vectorBytes = 16

// list is registers as an operand, and the width of the vector as a suffix.
func list(all []value) (suffix, names string) {
	if len(all) == 1 {
		return "", all[0].String()
	}
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = v.String()
	}
	return fmt.Sprintf(".v%d", len(all)), "{" + strings.Join(texts, ", ") + "}"
}

// bfloat16 are the bits of the nearest bfloat16.
func bfloat16(m code.Machine, v value) value {
	odd := m.Op2(code.And32, m.Op2(code.ShrU32, v, code.U32(16)), code.U32(1))
	r := m.Op2(code.AddS32, m.Op2(code.AddS32, v, code.U32(0x7fff)), odd)
	r = m.Op2(code.ShrU32, r, code.U32(16))
	return m.Op3(code.Select32, code.U32(0x7fff), r, m.Op2(code.NanF32, v, v))
}
