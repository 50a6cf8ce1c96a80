package routine

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

type value = code.Value

// writer writes one kernel.
type writer struct {
	*code.Emitter
	Kernel

	params      []string
	sharedBytes int
}

// text is the whole module.
func (w *writer) text() string {
	w.Line("ret")
	var b strings.Builder
	b.WriteString(".version 7.0\n.target sm_70\n.address_size 64\n")
	fmt.Fprintf(&b, "\n.visible .entry %s(\n%s\n)\n.maxntid %d, 1, 1\n{\n", w.Entry(), strings.Join(w.params, ",\n"), BlockThreads)
	if w.sharedBytes > 0 {
		fmt.Fprintf(&b, "\t.shared .align 8 .b8 shared[%d];\n", w.sharedBytes)
	}
	b.WriteString(w.Body())
	b.WriteString("}\n")
	return b.String()
}

// declare is the name of a new parameter.
func (w *writer) declare(bytes int) string {
	name := fmt.Sprintf("p%d", len(w.params))
	w.params = append(w.params, fmt.Sprintf("\t.param .u%d %s", 8*bytes, name))
	return name
}

// param is a new parameter, loaded.
func (w *writer) param(bytes int) value {
	return w.loadParam(w.declare(bytes), bytes)
}

func (w *writer) loadParam(name string, bytes int) value {
	class := code.B32
	if bytes == addressBytes {
		class = code.B64
	}
	to := w.New(class)
	w.Line("ld.param.u%d %v, [%s]", 8*bytes, to, name)
	return to
}

const addressBytes = 8

func (w *writer) address() value { return w.param(addressBytes) }
func (w *writer) word() value    { return w.param(4) }

// size is a parameter that is an index.
func (w *writer) size() value {
	if w.Wide {
		return w.param(8)
	}
	return w.word()
}

func (w *writer) sizes(count uint8) []value {
	all := make([]value, count)
	for i := range all {
		all[i] = w.size()
	}
	return all
}

func (w *writer) pick(narrow, wide code.Op) code.Op {
	if w.Wide {
		return wide
	}
	return narrow
}

func (w *writer) add(a, b value) value  { return w.Op2(w.pick(code.AddS32, code.AddS64), a, b) }
func (w *writer) sub(a, b value) value  { return w.Op2(w.pick(code.SubS32, code.SubS64), a, b) }
func (w *writer) mul(a, b value) value  { return w.Op2(w.pick(code.MulS32, code.MulS64), a, b) }
func (w *writer) div(a, b value) value  { return w.Op2(w.pick(code.DivU32, code.DivU64), a, b) }
func (w *writer) less(a, b value) value { return w.Op2(w.pick(code.LtU32, code.LtU64), a, b) }

// index is a number of 32 bits without a sign as an index.
func (w *writer) index(v value) value {
	if w.Wide {
		return w.Op1(code.U64FromU32, v)
	}
	return v
}

// narrow is the low half of an index.
func (w *writer) narrow(v value) value {
	if w.Wide {
		return w.Op1(code.U32FromU64, v)
	}
	return v
}

func (w *writer) constant(n int) value {
	if w.Wide {
		return code.U64(uint64(n)) //nolint:gosec // positive
	}
	return code.U32(uint32(n)) //nolint:gosec // positive
}

// special is a register of the hardware.
func (w *writer) special(name string) value {
	to := w.New(code.B32)
	w.Line("mov.u32 %v, %%%s", to, name)
	return to
}

// thread is the number of the thread in the grid.
func (w *writer) thread() value {
	return w.add(w.mul(w.index(w.special("ctaid.x")), w.constant(BlockThreads)), w.index(w.special("tid.x")))
}

// split takes a number apart: the index in each dimension of a shape.
func (w *writer) split(at value, shape []value) []value {
	all := make([]value, len(shape))
	for d := len(shape) - 1; d > 0; d-- {
		q := w.div(at, shape[d])
		all[d] = w.sub(at, w.mul(q, shape[d]))
		at = q
	}
	if len(all) > 0 {
		all[0] = at
	}
	return all
}

// operand is a tensor of a kernel, with its strides of the dimensions and of the columns.
type operand struct {
	at, start        value
	strides, columns []value
}

func (w *writer) operand() operand {
	return operand{at: w.address(), start: w.size(), strides: w.sizes(w.Rank)}
}

func (w *writer) operandOfColumns() operand {
	o := w.operand()
	o.columns = w.sizes(w.Columns)
	return o
}

// moved is a place moved by indices along dimensions.
func (w *writer) moved(place value, at, strides []value) value {
	for d, i := range at {
		place = w.add(place, w.mul(i, strides[d]))
	}
	return place
}

// place is the place of an element, by its index.
func (w *writer) place(o operand, at []value) value { return w.moved(o.start, at, o.strides) }

// element is the address of a place.
func (w *writer) element(base, place value, bytes int) value {
	if w.Wide {
		return w.Op2(code.AddS64, base, w.Op2(code.MulS64, place, code.U64(uint64(bytes)))) //nolint:gosec // positive
	}
	return w.Op2(code.AddS64, base, w.Op2(code.MulWideS32, place, code.U32(uint32(bytes)))) //nolint:gosec // positive
}

// item is the address of an element of 4 bytes, by a number of 32 bits without a sign.
func (w *writer) item(base, at value) value {
	return w.Op2(code.AddS64, base, w.Op2(code.MulWideU32, at, code.U32(4)))
}

func (w *writer) loadWord(address value) value {
	to := w.New(code.B32)
	w.Line("ld.global.b32 %v, [%v]", to, address)
	return to
}

func (w *writer) storeWord(address, v value) {
	w.Line("st.global.b32 [%v], %v", address, w.Register(v))
}

// loadIndex is an index of a tensor, of 64 bits.
func (w *writer) loadIndex(of tensor.Type, address value) value {
	if of == tensor.Int64 {
		to := w.New(code.B64)
		w.Line("ld.global.b64 %v, [%v]", to, address)
		return to
	}
	return w.Op1(code.S64FromS32, w.loadWord(address))
}

// checked is an index along a dimension of some length: it is not negative, and below the length.
func (w *writer) checked(index, length value) value {
	if !w.Wide {
		length = w.Op1(code.U64FromU32, length)
	}
	w.Line("@%v trap", w.Op2(code.GeU64, index, length))
	if w.Wide {
		return index
	}
	return w.Op1(code.U32FromU64, index)
}

// loop runs the body for numbers of 32 bits from 0 up to a limit.
func (w *writer) loop(limit value, step uint32, body func(at value)) {
	at := w.Variable(code.U32(0))
	top, bottom := w.Label(), w.Label()
	w.Place(top)
	w.Scope(func() {
		now := w.Get(at)
		w.Line("@%v bra %s", w.Op2(code.GeU32, now, limit), bottom)
		body(now)
		w.Set(at, w.Op2(code.AddS32, now, code.U32(step)))
		w.Line("bra %s", top)
	})
	w.Place(bottom)
}

func (w *writer) sync() { w.Line("bar.sync 0") }

// sharedWords are so many words of shared memory: their address.
func (w *writer) sharedWords(count int) value {
	base := w.New(code.B32)
	w.Line("mov.u32 %v, shared", base)
	from := w.sharedBytes
	w.sharedBytes += 4 * count
	return w.Op2(code.AddS32, base, code.U32(uint32(from))) //nolint:gosec // small
}

func (w *writer) sharedItem(base, at value) value {
	return w.Op2(code.AddS32, base, w.Op2(code.Shl32, at, code.U32(2)))
}

func (w *writer) loadShared(address value) value {
	to := w.New(code.B32)
	w.Line("ld.shared.b32 %v, [%v]", to, address)
	return to
}

func (w *writer) storeShared(address, v value) {
	w.Line("st.shared.b32 [%v], %v", address, w.Register(v))
}
