package routine

import (
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// segmentItems is the number of items that a thread loads before it adds the first one: a key with many would else wait for the
// memory once for each.
const segmentItems = 8

// segments writes Segments: a thread for each column of each key; the first one of equal keys adds.
func (w *writer) segments() {
	of, kind := w.Of[0], w.Of[1]
	threads, count, columns := w.size(), w.size(), w.size()
	keys, numbers := w.address(), w.address()
	shape, columnShape := w.sizes(w.Rank), w.sizes(w.Columns)
	out, source, indices := w.operandOfColumns(), w.operandOfColumns(), w.operand()
	step, left := w.size(), w.word()
	thread := w.thread()
	w.If(w.Less(thread, threads), func() {
		number := w.Div(thread, columns)
		column := w.Split(w.Sub(thread, w.Mul(number, columns)), columnShape)
		first, end := w.Narrow(number), w.Narrow(count)
		key := w.loadWord(w.item(keys, first))
		before := w.Variable(w.Op1(code.Not32, key))
		w.If(w.Op2(code.NeS32, first, code.U32(0)), func() {
			w.Set(before, w.loadWord(w.item(keys, w.Op2(code.SubS32, first, code.U32(1)))))
		})
		wanted := w.Op2(code.AndPred, w.Op2(code.NeS32, w.Get(before), key), w.Op2(code.NeS32, left, key))
		w.If(wanted, func() {
			index := w.Split(w.Index(w.loadWord(w.item(numbers, first))), shape)
			row := w.loadIndex(kind, w.Address(indices.at, w.place(indices, index), kind.Size()))
			if !w.Wide {
				row = w.Op1(code.U32FromU64, row)
			}
			to := w.moved(w.Add(w.place(out, index), w.Mul(row, step)), column, out.columns)
			address := w.Address(out.at, to, of.Size())
			total := w.Variable(w.Load("global", of, address, 1)[0])
			at := w.Variable(first)
			for _, count := range []uint32{segmentItems, 1} {
				w.Loop(func(done string) {
					now := w.Get(at)
					last := w.Op2(code.AddS32, now, code.U32(count-1))
					w.Line("@%v bra %s", w.Op2(code.GeU32, last, end), done)
					w.Line("@%v bra %s", w.Op2(code.NeS32, w.loadWord(w.item(keys, last)), key), done) // keys are sorted
					var all []value
					for i := range count {
						index := w.Split(w.Index(w.loadWord(w.item(numbers, w.Op2(code.AddS32, now, code.U32(i))))), shape)
						from := w.moved(w.place(source, index), column, source.columns)
						all = append(all, w.Load("global", of, w.Address(source.at, from, of.Size()), 1)[0])
					}
					for _, x := range all {
						w.Set(total, w.Op2(addOf(of), w.Get(total), x))
					}
					w.Set(at, w.Op2(code.AddS32, now, code.U32(count)))
				})
			}
			w.Store(of, address, w.Get(total))
		})
	})
}

// addOf returns the operation that adds elements of a type.
func addOf(t tensor.Type) code.Op {
	switch t { //nolint:exhaustive // the others are added as 32 bits
	case tensor.Int64:
		return code.AddS64
	case tensor.Float16, tensor.BFloat16, tensor.Float32:
		return code.AddF32
	case tensor.Float64:
		return code.AddF64
	}
	return code.AddS32
}
