package routine

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

const (
	// SquareSlots is the number of tensors of a launch of SquareSums.
	SquareSlots = 128
	// SquareBlockLen is the number of elements of a tensor of which a block adds the squares.
	SquareBlockLen = 16 << 10

	clipEpsilon = 1e-6 // PyTorch's
)

// squareSums writes SquareSums.
func (w *writer) squareSums() {
	sums := w.address()
	of, size, length := w.Of[0], uint32(w.Of[0].Size()), uint32(vectorLen(w.Of[0])) //nolint:gosec // small
	t := w.tensorOfBlock(SquareSlots, 1, SquareBlockLen)
	at := w.Op2(code.AddS64, t.at[0], w.Op2(code.MulS64, t.begin, code.U64(uint64(size))))
	thread := w.Special("tid.x")
	vectors := w.Variable(code.U32(0))
	w.If(w.Op2(code.EqS64, w.Op2(code.And64, at, code.U64(vectorBytes-1)), code.U64(0)), func() {
		w.Set(vectors, w.Op2(code.DivU32, t.count, code.U32(length)))
	})
	whole := w.Get(vectors)
	total := w.Variable(code.F32(0))
	add := func(all []value) {
		for _, x := range all {
			w.Set(total, w.Op3(code.FmaF32, x, x, w.Get(total)))
		}
	}
	first := w.Variable(thread)
	for _, count := range []uint32{rowVectors, 1} {
		w.Loop(func(end string) {
			now := w.Get(first)
			w.Line("@%v bra %s", w.Op2(code.GeU32, w.Op2(code.AddS32, now, code.U32((count-1)*BlockThreads)), whole), end)
			var all [][4]value
			for i := range count {
				vector := w.Op2(code.AddS32, now, code.U32(i*BlockThreads))
				all = append(all, w.words("global", w.Op2(code.AddS64, at, w.Op2(code.MulWideU32, vector, code.U32(vectorBytes)))))
			}
			for _, words := range all {
				add(w.unpacked(of, words))
			}
			w.Set(first, w.Op2(code.AddS32, now, code.U32(count*BlockThreads)))
		})
	}
	w.loopFrom(w.Op2(code.AddS32, w.Op2(code.MulS32, whole, code.U32(length)), thread), t.count, BlockThreads, func(i value) {
		add(w.Load("global", of, w.Op2(code.AddS64, at, w.Op2(code.MulWideU32, i, code.U32(size))), 1))
	})
	all := w.reduced(BlockThreads, thread, []value{w.Get(total)}, w.sum)
	w.If(w.Op2(code.EqS32, thread, code.U32(0)), func() { w.storeWord(w.item(sums, w.Special("ctaid.x")), all[0]) })
}

// clipScale writes ClipScale.
func (w *writer) clipScale() {
	sums, count, most := w.address(), w.word(), w.Float(4)
	normAt, scaleAt, flagAt := w.address(), w.address(), w.address()
	thread := w.Special("tid.x")
	total := w.Variable(code.F32(0))
	w.loopFrom(thread, count, uint32(w.BlockThreads()), func(at value) { //nolint:gosec // small
		w.Set(total, w.Op2(code.AddF32, w.Get(total), w.loadWord(w.item(sums, at))))
	})
	all := w.reduced(w.BlockThreads(), thread, []value{w.Get(total)}, w.sum)
	norm := w.Op1(code.SqrtF32, all[0])
	scale := w.Op2(code.DivF32, most, w.Op2(code.AddF32, norm, code.F32(clipEpsilon)))
	scale = w.Op3(code.Select32, code.F32(1), scale, w.Op2(code.GtF32, scale, code.F32(1))) // NaN stays
	finite := w.Op2(code.LtF32, norm, code.F32(float32(math.Inf(1))))
	w.If(w.Op2(code.EqS32, thread, code.U32(0)), func() {
		store := func(of tensor.Type, at, v value) {
			w.If(w.Op2(code.NeS64, at, code.U64(0)), func() { w.Store(of, at, v) })
		}
		store(tensor.Float32, normAt, norm)
		store(tensor.Float32, scaleAt, scale)
		store(tensor.Bool, flagAt, w.Op1(code.NotPred, finite))
	})
}
