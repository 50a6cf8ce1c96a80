package routine

import (
	"math"
	"math/bits"
	"slices"

	"github.com/go-vram/vram/compute/kernel/elementary"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

const (
	// NormBlocks is the greatest number of blocks of NormBackward: about one for each multiprocessor of an H100, whose registers
	// hold no more, and one number for all devices, so that sums have the same bits on them.
	NormBlocks = 128

	normElements = 32 // of a row, that a thread has at most: more would not stay in registers
)

// NormKernel returns the kernel NormBackward for rows of so many elements of a type, unless a block cannot have such rows.
func NormKernel(of, weight tensor.Type, columns int, residual bool) (k Kernel, found bool) {
	length := vectorLen(of)
	lanes := warpThreads
	if columns > lanes*normElements {
		lanes = BlockThreads
	}
	if columns == 0 || columns%length != 0 || columns > lanes*normElements {
		return k, false
	}
	repeat := (columns + lanes*length - 1) / (lanes * length)
	return Kernel{
		Kind: NormBackward, Of: [4]tensor.Type{of, weight}, Lanes: uint16(lanes), Repeat: uint8(repeat), //nolint:gosec // small
		Whole: columns == repeat*lanes*length, Residual: residual,
	}, true
}

// NormRows returns the number of rows that a block of NormBackward takes at once.
func (k Kernel) NormRows() int { return BlockThreads / int(k.Lanes) }

// PartialLen returns the number of sums of a block of NormBackward.
func (k Kernel) PartialLen() int { return 2 * int(k.Repeat) * int(k.Lanes) * vectorLen(k.Of[0]) }

// NormSumsOf returns the kernel NormSums for the sums of a NormBackward.
func (k Kernel) NormSumsOf(out tensor.Type) Kernel {
	return Kernel{Kind: NormSums, Of: [4]tensor.Type{k.Of[0], out}, Lanes: k.Lanes, Repeat: k.Repeat}
}

// NormSumsBlocks returns the number of blocks of NormSums.
func (k Kernel) NormSumsBlocks() int { return k.PartialLen() / warpThreads }

// normRow is the thread's part of a row.
type normRow struct {
	at       []value // offsets of vectors in bytes, from the start of a row
	valid    []value // the vector is in the row
	distance [][]value
	grad     [][]value
	weighted [][]value
}

func (w *writer) plus(a, b value) value  { return w.Op2(code.AddF32, a, b) }
func (w *writer) minus(a, b value) value { return w.Op2(code.SubF32, a, b) }
func (w *writer) times(a, b value) value { return w.Op2(code.MulF32, a, b) }

// normOperands are variables with the vectors of a row, zeros past its end, which are loaded while the row before is computed: a
// block has too few warps to wait for its loads. sample is an element.
type normOperands struct {
	x, grad, added [][4]value
	sample         value
}

// normOperands makes the variables.
func (w *writer) normOperands(r *normRow) (o normOperands) {
	vectors := func() (all [][4]value) {
		for range r.at {
			var words [4]value
			for j := range words {
				words[j] = w.Variable(code.U32(0))
			}
			all = append(all, words)
		}
		return all
	}
	o.x, o.grad, o.sample = vectors(), vectors(), w.Variable(code.F32(0))
	if w.Residual {
		o.added = vectors()
	}
	return o
}

// fetch loads the operands of a row, which begin there.
func (w *writer) fetch(o *normOperands, r *normRow, x, grad, added value) {
	for _, operand := range []struct {
		base value
		to   [][4]value
	}{{x, o.x}, {grad, o.grad}, {added, o.added}} {
		for i, to := range operand.to {
			load := func() {
				for j, word := range w.words("global", w.Op2(code.AddS64, operand.base, r.at[i])) {
					w.Set(to[j], word)
				}
			}
			if r.valid[i].Const {
				load()
			} else {
				w.If(r.valid[i], load)
			}
		}
	}
	w.Set(o.sample, w.Load("global", w.Of[0], x, 1)[0])
}

// fetched returns the operands that were loaded.
func (w *writer) fetched(o *normOperands) normOperands {
	vectors := func(of [][4]value) (all [][4]value) {
		for _, v := range of {
			var words [4]value
			for j := range words {
				words[j] = w.Get(v[j])
			}
			all = append(all, words)
		}
		return all
	}
	return normOperands{vectors(o.x), vectors(o.grad), vectors(o.added), w.Get(o.sample)}
}

// floats returns the elements of vectors.
func (w *writer) floats(words [][4]value) (all [][]value) {
	for _, v := range words {
		all = append(all, slices.Clone(w.unpacked(w.Of[0], v)))
	}
	return all
}

// weights loads the weights of the vectors, ones where there is no weight.
func (w *writer) weights(r *normRow, base value) (all [][]value) {
	length := vectorLen(w.Of[0])
	for i, at := range r.at {
		var some []value
		for range length {
			some = append(some, code.F32(1))
		}
		if w.Of[1].Valid() {
			column := w.Op2(code.ShrU64, at, code.U32(uint32(bits.TrailingZeros(uint(w.Of[0].Size())))))      //nolint:gosec // small
			address := w.Op2(code.AddS64, base, w.Op2(code.MulS64, column, code.U64(uint64(w.Of[1].Size())))) //nolint:gosec // small
			if r.valid[i].Const {
				some = w.Load("global", w.Of[1], address, length)
			} else {
				for j := range some {
					some[j] = w.Variable(code.U32(0))
				}
				w.If(r.valid[i], func() {
					for j, x := range w.Load("global", w.Of[1], address, length) {
						w.Set(some[j], x)
					}
				})
			}
		}
		all = append(all, some)
	}
	return all
}

// centered takes a number from all distances of a row: those past its end stay 0.
func (w *writer) centered(r *normRow, center value) {
	for i, vector := range r.distance {
		for j, x := range vector {
			x = w.minus(x, center)
			r.distance[i][j] = w.Op3(code.Select32, x, code.F32(0), r.valid[i])
		}
	}
}

// nearSample is as in package expr.
const nearSample = 0x1p-16

// center returns the number from which the distances of a row are taken: the mean, or an element where they are near to each
// other or the mean is infinite, as package expr has it. So the distances of equal elements are 0, however large they are.
func (w *writer) center(mean, sample value) value {
	far := w.Op2(code.GtF32, w.Op1(code.AbsF32, w.minus(mean, sample)), w.times(w.Op1(code.AbsF32, sample), code.F32(nearSample)))
	finite := w.Op2(code.LtF32, w.Op1(code.AbsF32, mean), code.F32(float32(math.Inf(1))))
	return w.Op3(code.Select32, mean, sample, w.Op2(code.AndPred, far, finite))
}

// variance returns the variance, of the means of squares and of distances. An infinite one stays.
func (w *writer) variance(squares, rest value) value {
	v := w.Op2(code.MaxF32, w.Op3(code.FmaF32, w.Op1(code.NegF32, rest), rest, squares), code.F32(0))
	return w.Op3(code.Select32, squares, v, w.Op2(code.EqF32, squares, code.F32(float32(math.Inf(1)))))
}

// lanesReduced combines values of the threads of a row.
func (w *writer) lanesReduced(thread value, all ...value) []value {
	if w.Lanes == warpThreads {
		return w.warpReduced(warpThreads, all, w.sum)
	}
	return w.reduced(BlockThreads, thread, all, w.sum)
}

// normSums are the variables in which a thread adds the gradients of weights and biases.
type normSums struct{ weights, biases [][]value }

// normBackward writes NormBackward.
func (w *writer) normBackward() {
	of, lanes, length := w.Of[0], uint32(w.Lanes), vectorLen(w.Of[0])
	rows, columns := w.word(), w.word()
	grads, xs, weights, residuals, out, partial := w.address(), w.address(), w.address(), w.address(), w.address(), w.address()
	epsilon := w.Float(4)
	thread, block := w.Special("tid.x"), w.Special("ctaid.x")
	lane, warp := thread, code.U32(0)
	if w.Lanes == warpThreads {
		lane, warp = w.Op2(code.And32, thread, code.U32(warpThreads-1)), w.Op2(code.ShrU32, thread, code.U32(5))
	}
	var r normRow
	var s normSums
	for i := range uint32(w.Repeat) {
		vector := w.Op2(code.AddS32, lane, code.U32(i*lanes))
		r.at = append(r.at, w.Op2(code.MulWideU32, vector, code.U32(vectorBytes)))
		valid := code.Bool(true)
		if i == uint32(w.Repeat)-1 && !w.Whole {
			valid = w.Op2(code.LtU32, w.Op2(code.MulS32, vector, code.U32(uint32(length))), columns) //nolint:gosec // small
		}
		r.valid = append(r.valid, valid)
		var sums [2][]value
		for part := range sums {
			for range length {
				sums[part] = append(sums[part], w.Variable(code.F32(0)))
			}
		}
		s.weights, s.biases = append(s.weights, sums[0]), append(s.biases, sums[1])
	}
	each := w.Op2(code.DivF32, code.F32(1), w.Op1(code.F32FromU32, columns))
	rowBytes := w.Op2(code.MulS32, columns, code.U32(uint32(of.Size()))) //nolint:gosec // small
	perBlock := uint32(w.NormRows())                                     //nolint:gosec // small
	step := w.Op2(code.MulS32, w.Special("nctaid.x"), code.U32(perBlock))
	row := w.Variable(w.Op2(code.AddS32, w.Op2(code.MulS32, block, code.U32(perBlock)), warp))
	operands := w.normOperands(&r)
	fetch := func(row value) {
		w.If(w.Op2(code.LtU32, row, rows), func() {
			begin := w.Op2(code.MulWideU32, row, rowBytes)
			w.fetch(&operands, &r, w.Op2(code.AddS64, xs, begin), w.Op2(code.AddS64, grads, begin), w.Op2(code.AddS64, residuals, begin))
		})
	}
	fetch(w.Get(row))
	w.Loop(func(end string) {
		now := w.Get(row)
		w.Line("@%v bra %s", w.Op2(code.GeU32, now, rows), end)
		this, next := w.fetched(&operands), w.Op2(code.AddS32, now, step)
		fetch(next)
		w.normRow(&r, &s, &this, weights, w.Op2(code.AddS64, out, w.Op2(code.MulWideU32, now, rowBytes)), thread, each, epsilon)
		w.Set(row, next)
	})
	w.leave(&s, thread, lane, warp, w.Op2(code.AddS64, partial, w.Op2(code.MulWideU32, block, code.U32(uint32(4*w.PartialLen()))))) //nolint:gosec // small
}

// normRow computes the gradient of a row, of its operands and the address of the weights.
func (w *writer) normRow(r *normRow, s *normSums, o *normOperands, weight, out, thread, each, epsilon value) {
	of := w.Of[0]
	r.distance, r.grad = w.floats(o.x), w.floats(o.grad)
	weights := w.weights(r, weight)
	total := code.F32(0)
	for _, vector := range r.distance {
		for _, x := range vector {
			total = w.plus(total, x)
		}
	}
	w.centered(r, w.center(w.times(w.lanesReduced(thread, total)[0], each), o.sample))
	distances := code.F32(0)
	squares, plain, products := code.F32(0), code.F32(0), code.F32(0)
	r.weighted = nil
	for i, vector := range r.distance {
		var weighted []value
		for j, x := range vector {
			g := w.times(r.grad[i][j], weights[i][j])
			weighted = append(weighted, g)
			distances = w.plus(distances, x)
			squares = w.Op3(code.FmaF32, x, x, squares)
			plain = w.plus(plain, g)
			products = w.Op3(code.FmaF32, g, x, products)
		}
		r.weighted = append(r.weighted, weighted)
	}
	all := w.lanesReduced(thread, distances, squares, plain, products)
	for i := range all {
		all[i] = w.times(all[i], each)
	}
	rest, mean := all[0], all[2] // of the distances, and of the weighted gradients
	factor := elementary.BuildRsqrt(w, w.plus(w.variance(all[1], rest), epsilon))
	along := w.times(w.minus(all[3], w.times(rest, mean)), factor)
	along = w.Op3(code.Select32, code.F32(0), along, w.Op2(code.EqF32, factor, code.F32(0))) // of an infinite variance
	for i, vector := range r.distance {
		var results []value
		for j, x := range vector {
			hat, g := w.times(w.minus(x, rest), factor), r.grad[i][j]
			w.Set(s.weights[i][j], w.Op3(code.FmaF32, g, hat, w.Get(s.weights[i][j])))
			w.Set(s.biases[i][j], w.plus(w.Get(s.biases[i][j]), g))
			change := w.Op3(code.FmaF32, hat, w.Op1(code.NegF32, along), w.minus(r.weighted[i][j], mean))
			if change = w.times(change, factor); w.Residual {
				change = w.plus(change, w.unpacked(of, o.added[i])[j])
			}
			results = append(results, change)
		}
		at := w.Op2(code.AddS64, out, r.at[i])
		w.If(r.valid[i], func() { w.storeExact(of, at, results) })
	}
}

// storeExact stores a vector, of which elements may be NaN.
func (w *writer) storeExact(of tensor.Type, at value, all []value) {
	if of == tensor.BFloat16 {
		for i := range all {
			// The rounding of NaN would make another number of it: a NaN whose low half is 0 stays one.
			all[i] = w.Op3(code.Select32, code.U32(0x7fc00000), all[i], w.Op2(code.NanF32, all[i], all[i]))
		}
	}
	w.storeWords("global", at, w.packed(of, all))
}

// leave writes the sums of a block: at (part*length + element of a vector)*lanes + lane, for each vector of a thread.
func (w *writer) leave(s *normSums, thread, lane, warp, to value) {
	lanes, length := uint32(w.Lanes), uint32(vectorLen(w.Of[0])) //nolint:gosec // small
	items := 2 * length * lanes
	base := code.U32(0)
	if w.Lanes == warpThreads {
		base = w.sharedWords(int(items) * w.NormRows())
	}
	for i := range s.weights {
		first := uint32(i) * items //nolint:gosec // small
		each := func(do func(item uint32, sum value)) {
			for part, sums := range [...][]value{s.weights[i], s.biases[i]} {
				for j, sum := range sums {
					do((uint32(part)*length+uint32(j))*lanes, w.Get(sum)) //nolint:gosec // small
				}
			}
		}
		if w.Lanes != warpThreads {
			each(func(item uint32, sum value) {
				w.storeWord(w.item(to, w.Op2(code.AddS32, lane, code.U32(first+item))), sum)
			})
			continue
		}
		mine := w.Op2(code.AddS32, w.Op2(code.MulS32, warp, code.U32(items)), lane)
		each(func(item uint32, sum value) {
			w.storeShared(w.sharedItem(base, w.Op2(code.AddS32, mine, code.U32(item))), sum)
		})
		w.Barrier()
		for from := uint32(0); from < items; from += BlockThreads {
			item := w.Op2(code.AddS32, thread, code.U32(from))
			total := w.loadShared(w.sharedItem(base, item))
			for other := uint32(1); other < uint32(w.NormRows()); other++ { //nolint:gosec // small
				total = w.plus(total, w.loadShared(w.sharedItem(base, w.Op2(code.AddS32, item, code.U32(other*items)))))
			}
			w.storeWord(w.item(to, w.Op2(code.AddS32, item, code.U32(first))), total)
		}
		w.Barrier()
	}
}

// normSums writes NormSums: the threads of a warp have neighbouring sums, and its warps share the blocks that have left some.
func (w *writer) normSums() {
	partial, blocks, columns := w.address(), w.word(), w.word()
	outs := [2]value{w.address(), w.address()}
	thread := w.Special("tid.x")
	lane, warp := w.Op2(code.And32, thread, code.U32(warpThreads-1)), w.Op2(code.ShrU32, thread, code.U32(5))
	place := w.Op2(code.AddS32, w.Op2(code.MulS32, w.Special("ctaid.x"), code.U32(warpThreads)), lane)
	const warps, atOnce = BlockThreads / warpThreads, 4
	stride := uint32(w.PartialLen()) //nolint:gosec // small
	total := w.Variable(code.F32(0))
	load := func(block value) value {
		return w.loadWord(w.item(partial, w.Op2(code.AddS32, w.Op2(code.MulS32, block, code.U32(stride)), place)))
	}
	at := w.Variable(warp)
	for _, count := range []uint32{atOnce, 1} {
		w.Loop(func(end string) {
			now := w.Get(at)
			w.Line("@%v bra %s", w.Op2(code.GeU32, w.Op2(code.AddS32, now, code.U32((count-1)*warps)), blocks), end)
			var all []value
			for i := range count {
				all = append(all, load(w.Op2(code.AddS32, now, code.U32(i*warps))))
			}
			for _, x := range all {
				w.Set(total, w.plus(w.Get(total), x))
			}
			w.Set(at, w.Op2(code.AddS32, now, code.U32(count*warps)))
		})
	}
	base := w.sharedWords(BlockThreads)
	w.storeShared(w.sharedItem(base, thread), w.Get(total))
	w.Barrier()
	w.If(w.Op2(code.EqS32, warp, code.U32(0)), func() {
		sum := w.Get(total)
		for other := uint32(1); other < warps; other++ {
			sum = w.plus(sum, w.loadShared(w.sharedItem(base, w.Op2(code.AddS32, lane, code.U32(other*warpThreads)))))
		}
		lanes, length := uint32(w.Lanes), uint32(vectorLen(w.Of[0])) //nolint:gosec // small
		split := func(x value, by uint32) (quotient, rest value) {
			return w.Op2(code.DivU32, x, code.U32(by)), w.Op2(code.RemU32, x, code.U32(by))
		}
		upper, own := split(place, lanes)
		upper, element := split(upper, length)
		vector, part := split(upper, 2)
		column := w.Op2(code.MulS32, w.Op2(code.AddS32, w.Op2(code.MulS32, vector, code.U32(lanes)), own), code.U32(length))
		column = w.Op2(code.AddS32, column, element)
		out := w.Op3(code.Select64, outs[0], outs[1], w.Op2(code.EqS32, part, code.U32(0)))
		wanted := w.Op2(code.AndPred, w.Op2(code.LtU32, column, columns), w.Op2(code.NeS64, out, code.U64(0)))
		w.If(wanted, func() {
			w.Store(w.Of[1], w.Op2(code.AddS64, out, w.Op2(code.MulWideU32, column, code.U32(uint32(w.Of[1].Size())))), sum) //nolint:gosec // small
		})
	})
}
