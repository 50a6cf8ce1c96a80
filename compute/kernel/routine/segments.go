package routine

import "github.com/go-vram/vram/compute/kernel/internal/code"

// segments writes Segments: a thread for each column of each key; the first one of equal keys adds.
func (w *writer) segments() {
	of, kind := w.Of[0], w.Of[1]
	a := accessOf(of)
	threads, count, columns := w.size(), w.size(), w.size()
	keys, numbers := w.address(), w.address()
	shape, columnShape := w.sizes(w.Rank), w.sizes(w.Columns)
	out, source, indices := w.operandOfColumns(), w.operandOfColumns(), w.operand()
	step := w.size()
	thread := w.thread()
	w.If(w.less(thread, threads), func() {
		number := w.div(thread, columns)
		column := w.split(w.sub(thread, w.mul(number, columns)), columnShape)
		first, end := w.narrow(number), w.narrow(count)
		key := w.loadWord(w.item(keys, first))
		before := w.Variable(w.Op1(code.Not32, key))
		w.If(w.Op2(code.NeS32, first, code.U32(0)), func() {
			w.Set(before, w.loadWord(w.item(keys, w.Op2(code.SubS32, first, code.U32(1)))))
		})
		w.If(w.Op2(code.NeS32, w.Get(before), key), func() {
			index := w.split(w.index(w.loadWord(w.item(numbers, first))), shape)
			row := w.loadIndex(kind, w.element(indices.at, w.place(indices, index), kind.Size()))
			if !w.Wide {
				row = w.Op1(code.U32FromU64, row)
			}
			to := w.moved(w.add(w.place(out, index), w.mul(row, step)), column, out.columns)
			address := w.element(out.at, to, of.Size())
			total := w.Variable(w.load(of, address, 1)[0])
			at, here := w.Variable(first), w.Variable(key)
			top, bottom := w.Label(), w.Label()
			w.Place(top)
			w.Scope(func() {
				now := w.Get(at)
				index := w.split(w.index(w.loadWord(w.item(numbers, now))), shape)
				from := w.moved(w.place(source, index), column, source.columns)
				w.Set(total, w.Op2(a.add, w.Get(total), w.load(of, w.element(source.at, from, of.Size()), 1)[0]))
				next := w.Op2(code.AddS32, now, code.U32(1))
				w.Set(at, next)
				w.Line("@%v bra %s", w.Op2(code.GeU32, next, end), bottom)
				w.Set(here, w.loadWord(w.item(keys, next)))
				w.Line("@%v bra %s", w.Op2(code.EqS32, w.Get(here), key), top)
			})
			w.Place(bottom)
			w.store(of, address, w.Get(total))
		})
	})
}
