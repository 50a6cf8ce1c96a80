package routine

import "github.com/go-vram/vram/compute/kernel/internal/code"

const digitMask = 1<<DigitBits - 1

// keys writes Keys.
func (w *writer) keys() {
	count, shape := w.size(), w.sizes(w.Rank)
	indices := w.operand()
	factors := make([]value, w.Rank)
	for d := range factors {
		factors[d] = w.word()
	}
	factor, length := w.word(), w.size()
	keys, numbers := w.address(), w.address()
	at := w.thread()
	w.If(w.Less(at, count), func() {
		index := w.Split(at, shape)
		of := w.Of[0]
		found := w.checked(w.loadIndex(of, w.Address(indices.at, w.place(indices, index), of.Size())), length)
		key := w.Op2(code.MulS32, w.Narrow(found), factor)
		for d, i := range index {
			key = w.Op2(code.AddS32, key, w.Op2(code.MulS32, w.Narrow(i), factors[d]))
		}
		number := w.Narrow(at)
		w.storeWord(w.item(keys, number), key)
		w.storeWord(w.item(numbers, number), number)
	})
}

// tile is the keys of a block, in shared memory.
type tile struct {
	thread, block value // their numbers
	begin, count  value // of the keys: the first one, and how many
	words         value
}

// tile loads the block's keys.
func (w *writer) tile(keys, count value) tile {
	t := tile{thread: w.Special("tid.x"), block: w.Special("ctaid.x"), words: w.sharedWords(TileLen)}
	t.begin = w.Op2(code.MulS32, t.block, code.U32(TileLen))
	rest := w.Op2(code.SubS32, count, t.begin)
	t.count = w.Op3(code.Select32, rest, code.U32(TileLen), w.Op2(code.LtU32, rest, code.U32(TileLen)))
	for from := uint32(0); from < TileLen; from += BlockThreads {
		at := w.Op2(code.AddS32, t.thread, code.U32(from))
		w.If(w.Op2(code.LtU32, at, t.count), func() {
			w.storeShared(w.sharedItem(t.words, at), w.loadWord(w.item(keys, w.Op2(code.AddS32, t.begin, at))))
		})
	}
	w.Barrier()
	return t
}

// each runs the body in the thread whose number is the digit of a key, for the keys in their order.
func (w *writer) each(t tile, shift value, body func(at, key value)) {
	w.loop(t.count, 1, func(at value) {
		key := w.loadShared(w.sharedItem(t.words, at))
		digit := w.Op2(code.And32, w.Op2(code.ShrU32, key, shift), code.U32(digitMask))
		w.If(w.Op2(code.EqS32, digit, t.thread), func() { body(at, key) })
	})
}

// countOf is the place of the count of a digit in a tile.
func (w *writer) countOf(counts, digit, tiles, block value) value {
	return w.item(counts, w.Op2(code.AddS32, w.Op2(code.MulS32, digit, tiles), block))
}

// histogram writes Histogram.
func (w *writer) histogram() {
	keys, counts := w.address(), w.address()
	count, shift, tiles := w.word(), w.word(), w.word()
	t := w.tile(keys, count)
	found := w.Variable(code.U32(0))
	w.each(t, shift, func(_, _ value) { w.Set(found, w.Op2(code.AddS32, w.Get(found), code.U32(1))) })
	w.storeWord(w.countOf(counts, t.thread, tiles, t.block), w.Get(found))
}

// sums returns the sum of the values of the threads up to this one, and of all. threads is how many have a value, at least one.
func (w *writer) sums(v, thread, words, threads value) (up, all value) {
	up = w.Variable(v)
	own, done := w.sharedItem(words, thread), w.Label()
	for distance := uint32(1); distance < BlockThreads; distance *= 2 {
		if !threads.Const {
			w.Line("@%v bra %s", w.Op2(code.GeU32, code.U32(distance), threads), done)
		}
		w.Scope(func() {
			w.storeShared(own, w.Get(up))
			w.Barrier()
			w.If(w.Op2(code.GeU32, thread, code.U32(distance)), func() {
				other := w.loadShared(w.sharedItem(words, w.Op2(code.SubS32, thread, code.U32(distance))))
				w.Set(up, w.Op2(code.AddS32, w.Get(up), other))
			})
			w.Barrier()
		})
	}
	w.Place(done)
	w.storeShared(own, w.Get(up))
	w.Barrier()
	all = w.loadShared(w.sharedItem(words, w.Op2(code.SubS32, threads, code.U32(1))))
	w.Barrier()
	return w.Get(up), all
}

// scan writes Scan.
func (w *writer) scan() {
	counts, totals, tiles := w.address(), w.address(), w.word()
	thread, digit := w.Special("tid.x"), w.Special("ctaid.x")
	words := w.sharedWords(BlockThreads)
	before := w.Variable(code.U32(0))
	w.loop(tiles, BlockThreads, func(from value) {
		block := w.Op2(code.AddS32, from, thread)
		there := w.Op2(code.LtU32, block, tiles)
		at := w.countOf(counts, digit, tiles, block)
		v := w.Variable(code.U32(0))
		w.If(there, func() { w.Set(v, w.loadWord(at)) })
		own := w.Get(v)
		rest := w.Op2(code.SubS32, tiles, from)
		some := w.Op3(code.Select32, rest, code.U32(BlockThreads), w.Op2(code.LtU32, rest, code.U32(BlockThreads)))
		up, all := w.sums(own, thread, words, some)
		w.If(there, func() {
			w.storeWord(at, w.Op2(code.AddS32, w.Get(before), w.Op2(code.SubS32, up, own)))
		})
		w.Set(before, w.Op2(code.AddS32, w.Get(before), all))
	})
	w.If(w.Op2(code.EqS32, thread, code.U32(0)), func() { w.storeWord(w.item(totals, digit), w.Get(before)) })
}

// reorder writes Reorder.
func (w *writer) reorder() {
	keys, numbers, sortedKeys, sortedNumbers := w.address(), w.address(), w.address(), w.address()
	counts, totals := w.address(), w.address()
	count, shift, tiles := w.word(), w.word(), w.word()
	t := w.tile(keys, count)
	all, before := totals, code.U32(0)
	if w.Single {
		all = counts
	} else {
		before = w.loadWord(w.countOf(counts, t.thread, tiles, t.block))
	}
	own := w.loadWord(w.item(all, t.thread))
	up, _ := w.sums(own, t.thread, w.sharedWords(BlockThreads), code.U32(BlockThreads))
	to := w.Variable(w.Op2(code.AddS32, w.Op2(code.SubS32, up, own), before))
	w.each(t, shift, func(at, key value) {
		place := w.Get(to)
		w.storeWord(w.item(sortedKeys, place), key)
		w.storeWord(w.item(sortedNumbers, place), w.loadWord(w.item(numbers, w.Op2(code.AddS32, t.begin, at))))
		w.Set(to, w.Op2(code.AddS32, place, code.U32(1)))
	})
}
