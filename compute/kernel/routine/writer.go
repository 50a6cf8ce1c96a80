package routine

import (
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

type value = code.Value

// writer writes one kernel.
type writer struct {
	*code.Writer
	Kernel
}

func (w *writer) address() value { return w.Param(8) }
func (w *writer) word() value    { return w.Param(4) }

// size is a parameter that is an index.
func (w *writer) size() value {
	if w.Wide {
		return w.Param(8)
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

// thread is the number of the thread in the grid.
func (w *writer) thread() value {
	return w.Add(w.Mul(w.Index(w.Special("ctaid.x")), w.Constant(BlockThreads)), w.Index(w.Special("tid.x")))
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
		place = w.Add(place, w.Mul(i, strides[d]))
	}
	return place
}

// place is the place of an element, by its index.
func (w *writer) place(o operand, at []value) value { return w.moved(o.start, at, o.strides) }

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
	w.Loop(func(end string) {
		now := w.Get(at)
		w.Line("@%v bra %s", w.Op2(code.GeU32, now, limit), end)
		body(now)
		w.Set(at, w.Op2(code.AddS32, now, code.U32(step)))
	})
}

// sharedWords are so many words of shared memory: their address.
func (w *writer) sharedWords(count int) value {
	return w.Op2(code.AddS32, w.SharedBase(), code.U32(uint32(w.Reserve(4*count)))) //nolint:gosec // small
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
