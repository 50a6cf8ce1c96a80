package routine

import (
	"github.com/go-vram/vram/compute/kernel/internal/code"
)

// gather writes Gather.
func (w *writer) gather() {
	count, shape := w.size(), w.sizes(w.Rank)
	out, indices, source := w.operand(), w.operand(), w.operand()
	length, step := w.size(), w.size()
	at := w.thread()
	w.If(w.Less(at, count), func() {
		index := w.Split(at, shape)
		of := w.Of[0]
		found := w.checked(w.loadIndex(of, w.Address(indices.at, w.place(indices, index), of.Size())), length)
		from := w.Add(w.place(source, index), w.Mul(found, step))
		w.copy(w.Address(out.at, w.place(out, index), int(w.Unit)), w.Address(source.at, from, int(w.Unit)))
	})
}

// copy copies an element.
func (w *writer) copy(to, from value) {
	switch w.Unit {
	case 16:
		a, b := w.New(code.B64), w.New(code.B64)
		w.Line("ld.global.v2.b64 {%v, %v}, [%v]", a, b, from)
		w.Line("st.global.v2.b64 [%v], {%v, %v}", to, a, b)
	case 8:
		a := w.New(code.B64)
		w.Line("ld.global.b64 %v, [%v]", a, from)
		w.Line("st.global.b64 [%v], %v", to, a)
	case 4:
		w.storeWord(to, w.loadWord(from))
	default:
		a := w.New(code.B32)
		w.Line("ld.global.u%d %v, [%v]", 8*w.Unit, a, from)
		w.Line("st.global.u%d [%v], %v", 8*w.Unit, to, a)
	}
}
