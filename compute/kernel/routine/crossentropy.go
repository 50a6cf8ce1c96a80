package routine

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/elementary"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// rowVectors is the number of vectors that a thread loads before it uses the first one.
const rowVectors = 4

// CrossEntropyThreads returns the number of threads of a block for rows of so many bytes: so many that most have several vectors.
func CrossEntropyThreads(rowBytes int) uint16 {
	const few, some, many = warpThreads, 128, 512 // two blocks of many threads use the shared memory of a multiprocessor
	switch vectors := rowBytes / vectorBytes; {
	case vectors <= few*rowVectors:
		return few
	case vectors <= some*rowVectors:
		return some
	}
	return many
}

// CrossEntropyTypes reports whether logits and targets may have the types.
func CrossEntropyTypes(logits, targets tensor.Type) bool {
	return AdamWTypes([4]tensor.Type{logits, logits, logits, logits}) && (targets == tensor.Int32 || targets == tensor.Int64)
}

// logitRow is the row of a block: elements before the first whole vector, vectors of 16 bytes, and the rest.
type logitRow struct {
	thread           value
	at, columns      value // the address of the first element, and the number of elements
	step             value // bytes from one element to the next, of 64 bits
	vectors          value // their address
	head, whole, end value // elements before the vectors, vectors, and elements up to the rest
	kept             value // the address of the vectors in shared memory
}

// logits finds the parts of a row.
func (w *writer) logits(at, columns, step value) (r logitRow) {
	size := w.Of[0].Size()
	r = logitRow{thread: w.Special("tid.x"), at: at, columns: columns}
	r.step = w.Op2(code.MulS64, step, code.U64(uint64(size))) //nolint:gosec // small
	shift := uint32(math.Log2(float64(size)))                 // of bytes and elements
	before := w.Op2(code.And32, w.Op1(code.NegS32, w.Op1(code.U32FromU64, at)), code.U32(vectorBytes-1))
	before = w.Op2(code.ShrU32, before, code.U32(shift))
	// Elements that lie apart all come before the vectors, of which there are none.
	before = w.Op3(code.Select32, before, columns, w.Op2(code.EqS64, step, code.U64(1)))
	r.head = w.Op2(code.MinS32, before, columns)
	r.vectors = w.Op2(code.AddS64, at, w.Op2(code.MulWideU32, r.head, code.U32(uint32(size)))) //nolint:gosec // small
	length := vectorLen(w.Of[0])
	rest := w.Op2(code.SubS32, columns, r.head)
	r.whole = w.Op2(code.ShrU32, rest, code.U32(uint32(math.Log2(float64(length)))))
	r.end = w.Op2(code.AddS32, r.head, w.Op2(code.And32, rest, code.U32(^uint32(length-1)))) //nolint:gosec // small
	if w.SharedKiB > 0 {
		r.kept = w.DynamicBase()
	}
	return r
}

// logitAt returns the address of an element.
func (w *writer) logitAt(r *logitRow, column value) value {
	return w.Op2(code.AddS64, r.at, w.Op2(code.MulS64, w.Op1(code.U64FromU32, column), r.step))
}

// loopFrom runs the body for numbers of 32 bits up to a limit, one for each thread of the block in turn.
func (w *writer) loopFrom(from, limit value, step uint32, body func(at value)) {
	at := w.Variable(from)
	w.Loop(func(end string) {
		now := w.Get(at)
		w.Line("@%v bra %s", w.Op2(code.GeU32, now, limit), end)
		body(now)
		w.Set(at, w.Op2(code.AddS32, now, code.U32(step)))
	})
}

// apart runs the body for the elements that are in no vector.
func (w *writer) apart(r *logitRow, body func(column value)) {
	threads := uint32(w.BlockThreads()) //nolint:gosec // small
	w.loopFrom(r.thread, r.head, threads, body)
	w.loopFrom(w.Op2(code.AddS32, r.end, r.thread), r.columns, threads, body)
}

// each16 runs the body for the addresses of the vectors in global and in shared memory, several at once while there are as many.
func (w *writer) each16(r *logitRow, count int, body func(global, shared []value)) {
	threads := w.BlockThreads()
	places := func(number value, count int) (global, shared []value) {
		for i := range count {
			offset := w.Op2(code.MulWideU32, w.Op2(code.AddS32, number, code.U32(uint32(i*threads))), code.U32(vectorBytes)) //nolint:gosec // small
			global = append(global, w.Op2(code.AddS64, r.vectors, offset))
			if w.SharedKiB > 0 {
				shared = append(shared, w.Op2(code.AddS32, r.kept, w.Op1(code.U32FromU64, offset)))
			}
		}
		return global, shared
	}
	at := w.Variable(r.thread)
	for _, count := range []int{count, 1} {
		w.Loop(func(end string) {
			now := w.Get(at)
			last := w.Op2(code.AddS32, now, code.U32(uint32((count-1)*threads))) //nolint:gosec // small
			w.Line("@%v bra %s", w.Op2(code.GeU32, last, r.whole), end)
			global, shared := places(now, count)
			body(global, shared)
			w.Set(at, w.Op2(code.AddS32, now, code.U32(uint32(count*threads)))) //nolint:gosec // small
		})
	}
}

// finiteBase returns the number from which distances are taken: the maximum, or 0 where that is -Inf, as its distance to itself is NaN.
func (w *writer) finiteBase(top value) value {
	return w.Op3(code.Select32, code.F32(0), top, w.Op2(code.EqF32, top, code.F32(float32(math.Inf(-1)))))
}

// exponential returns exp(x-base).
func (w *writer) exponential(x, base value) value {
	return w.exp2(w.Op2(code.MulF32, w.Op2(code.SubF32, x, base), code.F32(math.Log2E)))
}

// online adds elements to a maximum and the sum of exponentials of distances to it (M. Milakov, N. Gimelshein: Online
// normalizer calculation for softmax). NaN is not in the maximum, but in the sum.
func (w *writer) online(top, sum value, elements []value) {
	old := w.Get(top)
	now := old
	for _, x := range elements {
		now = w.Op2(code.MaxF32, now, x)
	}
	base := w.finiteBase(now)
	total := w.Op2(code.MulF32, w.Get(sum), w.exponential(old, base))
	for _, x := range elements {
		total = w.Op2(code.AddF32, total, w.exponential(x, base))
	}
	w.Set(top, now)
	w.Set(sum, total)
}

// joined joins two maxima and their sums.
func (w *writer) joined(a, b []value) []value {
	top := w.Op2(code.MaxF32, a[0], b[0])
	base := w.finiteBase(top)
	part := func(s []value) value { return w.Op2(code.MulF32, s[1], w.exponential(s[0], base)) }
	return []value{top, w.Op2(code.AddF32, part(a), part(b))}
}

// normalizer returns the maximum of a row, and the sum of the exponentials of the distances to it. It leaves the vectors in
// shared memory if they are kept.
func (w *writer) normalizer(r *logitRow) (base, sum value) {
	of := w.Of[0]
	top, total := w.Variable(code.F32(float32(math.Inf(-1)))), w.Variable(code.F32(0))
	w.each16(r, rowVectors, func(global, shared []value) {
		var all [][4]value
		for _, at := range global {
			all = append(all, w.words("global", at))
		}
		for i, words := range all {
			if shared != nil {
				w.storeWords("shared", shared[i], words)
			}
			w.online(top, total, w.unpacked(of, words))
		}
	})
	w.apart(r, func(column value) { w.online(top, total, w.Load("global", of, w.logitAt(r, column), 1)) })
	all := w.reduced(w.BlockThreads(), r.thread, []value{w.Get(top), w.Get(total)}, w.joined)
	return w.finiteBase(all[0]), all[1]
}

// write stores the gradient over the row: the product of a factor and the exponential of the distance. Where the factor is not
// finite, elements may be NaN.
func (w *writer) write(r *logitRow, base, factor value) {
	of := w.Of[0]
	gradient := func(x value) value { return w.Op2(code.MulF32, w.exponential(x, base), factor) }
	single := func(column value) {
		at := w.logitAt(r, column)
		w.Store(of, at, gradient(w.Load("global", of, at, 1)[0]))
	}
	special, end := w.Label(), w.Label()
	w.Line("@!%v bra %s", w.Op2(code.LtF32, w.Op1(code.AbsF32, factor), code.F32(float32(math.Inf(1)))), special)
	w.Scope(func() {
		w.each16(r, 2, func(global, shared []value) {
			var all [][4]value
			for i, at := range global {
				if shared != nil {
					all = append(all, w.words("shared", shared[i]))
				} else {
					all = append(all, w.words("global", at))
				}
			}
			for i, words := range all {
				var results []value
				for _, x := range w.unpacked(of, words) {
					results = append(results, gradient(x))
				}
				w.storeWords("global", global[i], w.packed(of, results))
			}
		})
		w.apart(r, single)
		w.Line("bra %s", end)
	})
	w.Place(special)
	w.loopFrom(r.thread, r.columns, uint32(w.BlockThreads()), single) //nolint:gosec // small
	w.Place(end)
}

// crossEntropy writes CrossEntropy.
func (w *writer) crossEntropy() {
	of := w.Of[0]
	shape := w.sizes(w.Rank)
	logits, targets, losses := w.operand(), w.operand(), w.operand()
	columns, step := w.word(), w.Param(8)
	countAt, scaleAt, scale := w.address(), w.address(), w.Float(4)
	ignores, ignored := w.word(), w.Param(8)
	index := w.Split(w.Index(w.Special("ctaid.x")), shape)
	target := w.loadIndex(w.Of[1], w.Address(targets.at, w.place(targets, index), w.Of[1].Size()))
	r := w.logits(w.Address(logits.at, w.place(logits, index), of.Size()), columns, step)
	first := w.Op2(code.EqS32, r.thread, code.U32(0))
	keepLoss := func(loss value) {
		w.If(w.Op2(code.AndPred, first, w.Op2(code.NeS64, losses.at, code.U64(0))), func() {
			w.storeWord(w.Address(losses.at, w.place(losses, index), 4), loss)
		})
	}
	end := w.Label()
	w.If(w.Op2(code.AndPred, w.Op2(code.NeS32, ignores, code.U32(0)), w.Op2(code.EqS64, target, ignored)), func() {
		w.each16(&r, 1, func(global, _ []value) {
			w.storeWords("global", global[0], [4]value{code.U32(0), code.U32(0), code.U32(0), code.U32(0)})
		})
		w.apart(&r, func(column value) { w.Store(of, w.logitAt(&r, column), code.F32(0)) })
		keepLoss(code.F32(0))
		w.Line("bra %s", end)
	})
	known := w.Op2(code.LtU64, target, w.Op1(code.U64FromU32, columns))
	chosen := w.Op3(code.Select32, w.Op1(code.U32FromU64, target), code.U32(0), known)
	chosenAt := w.logitAt(&r, chosen)
	x := w.Load("global", of, chosenAt, 1)[0]
	base, sum := w.normalizer(&r) // no thread writes before all have read the logit of the class
	loss := w.Op2(code.SubF32, elementary.BuildLog(w, sum), w.Op2(code.SubF32, x, base))
	keepLoss(w.Op3(code.Select32, loss, code.F32(float32(math.NaN())), known))

	factor := w.Variable(scale)
	for _, at := range []value{countAt, scaleAt} {
		w.If(w.Op2(code.NeS64, at, code.U64(0)), func() { w.Set(factor, w.Op2(code.MulF32, w.Get(factor), w.loadWord(at))) })
	}
	each := w.Get(factor)
	share := w.Op2(code.DivF32, each, sum)
	share = w.Op3(code.Select32, share, code.F32(float32(math.NaN())), known)
	if w.BlockThreads() == warpThreads {
		w.Barrier() // a larger block has had one
	}
	w.write(&r, base, share)
	w.Barrier()
	w.If(w.Op2(code.AndPred, first, known), func() {
		// Of a probability near 1 the distance is the sum of the others, which its own error hides: PyTorch's too.
		w.Store(of, chosenAt, w.Op2(code.SubF32, w.Op2(code.MulF32, w.exponential(x, base), share), each))
	})
	w.Place(end)
}

// counted writes Counted.
func (w *writer) counted() {
	count, shape := w.size(), w.sizes(w.Rank)
	targets := w.operand()
	ignored, out := w.Param(8), w.address()
	thread := w.Special("tid.x")
	found := w.Variable(code.F32(0)) // exact up to 2^24 for each thread
	w.all(thread, count, func(at value) {
		target := w.loadIndex(w.Of[1], w.Address(targets.at, w.place(targets, w.Split(at, shape)), w.Of[1].Size()))
		one := w.Op3(code.Select32, code.F32(1), code.F32(0), w.Op2(code.NeS64, target, ignored))
		w.Set(found, w.Op2(code.AddF32, w.Get(found), one))
	})
	all := w.reduced(w.BlockThreads(), thread, []value{w.Get(found)}, w.sum)
	w.If(w.Op2(code.EqS32, thread, code.U32(0)), func() { w.storeWord(out, w.Op2(code.DivF32, code.F32(1), all[0])) })
}

// total writes Total.
func (w *writer) total() {
	count, shape := w.size(), w.sizes(w.Rank)
	losses := w.operand()
	countAt, share, out := w.address(), w.Float(4), w.address()
	thread := w.Special("tid.x")
	sum := w.Variable(code.F32(0))
	w.all(thread, count, func(at value) {
		loss := w.loadWord(w.Address(losses.at, w.place(losses, w.Split(at, shape)), 4))
		w.Set(sum, w.Op2(code.AddF32, w.Get(sum), loss))
	})
	all := w.reduced(w.BlockThreads(), thread, []value{w.Get(sum)}, w.sum)
	w.If(w.Op2(code.EqS32, thread, code.U32(0)), func() {
		factor := w.Variable(share)
		w.If(w.Op2(code.NeS64, countAt, code.U64(0)), func() { w.Set(factor, w.loadWord(countAt)) })
		w.storeWord(out, w.Op2(code.MulF32, all[0], w.Get(factor)))
	})
}

// all runs the body for all indices up to a count, one for each thread of the block in turn.
func (w *writer) all(thread, count value, body func(at value)) {
	at := w.Variable(w.Index(thread))
	w.Loop(func(end string) {
		now := w.Get(at)
		w.Line("@!%v bra %s", w.Less(now, count), end)
		body(now)
		w.Set(at, w.Add(now, w.Constant(w.BlockThreads())))
	})
}
