package routine

import (
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

const (
	warpThreads = 32
	highHalf    = 0xffff0000
)

// vectorLen returns the number of elements of a type in a vector of 16 bytes.
func vectorLen(of tensor.Type) int { return vectorBytes / of.Size() }

// words loads 16 bytes.
func (w *writer) words(space string, address value) (all [4]value) {
	for i := range all {
		all[i] = w.New(code.B32)
	}
	_, registers := code.Vector(all[:])
	w.Line("ld.%s.v4.b32 %s, [%v]", space, registers, address)
	return all
}

// storeWords stores 16 bytes.
func (w *writer) storeWords(space string, address value, all [4]value) {
	for i := range all {
		all[i] = w.Register(all[i])
	}
	_, registers := code.Vector(all[:])
	w.Line("st.%s.v4.b32 [%v], %s", space, address, registers)
}

// unpacked returns the elements of a vector as float32.
func (w *writer) unpacked(of tensor.Type, words [4]value) []value {
	if of == tensor.Float32 {
		return words[:]
	}
	var all []value
	for _, word := range words {
		if of == tensor.BFloat16 {
			all = append(all, w.Op2(code.Shl32, word, code.U32(16)), w.Op2(code.And32, word, code.U32(highHalf)))
			continue
		}
		low, high := w.New(code.B16), w.New(code.B16)
		w.Line("mov.b32 {%v, %v}, %v", low, high, word)
		all = append(all, w.Op1(code.F32FromF16, low), w.Op1(code.F32FromF16, high))
	}
	return all
}

// packed returns float32 as a vector of a type, none of which is NaN: that saves the half of the instructions for bfloat16.
func (w *writer) packed(of tensor.Type, all []value) (words [4]value) {
	if of == tensor.Float32 {
		return [4]value(all)
	}
	for i := range words {
		low, high := all[2*i], all[2*i+1]
		if of == tensor.BFloat16 {
			low, high = w.roundedBits(low), w.roundedBits(high)
			words[i] = w.Op2(code.Or32, w.Op2(code.ShrU32, low, code.U32(16)), w.Op2(code.And32, high, code.U32(highHalf)))
			continue
		}
		low, high = w.Register(w.Op1(code.F16FromF32, low)), w.Register(w.Op1(code.F16FromF32, high))
		words[i] = w.New(code.B32)
		w.Line("mov.b32 %v, {%v, %v}", words[i], low, high)
	}
	return words
}

// roundedBits returns bits whose high half is the nearest bfloat16 of a number.
func (w *writer) roundedBits(v value) value {
	odd := w.Op2(code.And32, w.Op2(code.ShrU32, v, code.U32(16)), code.U32(1))
	return w.Op2(code.AddS32, w.Op2(code.AddS32, v, code.U32(0x7fff)), odd)
}

// exp2 returns 2^x with an error of 2 units in the last place: 0 of -Inf, and NaN of NaN.
func (w *writer) exp2(x value) value {
	to := w.New(code.B32)
	w.Line("ex2.approx.ftz.f32 %v, %v", to, w.Register(x))
	return to
}

// combine makes one value of each kind of two.
type combine func(a, b []value) []value

// sum adds values.
func (w *writer) sum(a, b []value) []value {
	all := make([]value, len(a))
	for i := range all {
		all[i] = w.Op2(code.AddF32, a[i], b[i])
	}
	return all
}

// warpReduced combines the values of so many neighbouring threads of a warp: each of them has the result.
func (w *writer) warpReduced(threads int, all []value, do combine) []value {
	for distance := threads / 2; distance > 0; distance /= 2 {
		others := make([]value, len(all))
		for i, v := range all {
			others[i] = w.New(code.B32)
			w.Line("shfl.sync.bfly.b32 %v, %v, %d, 31, -1", others[i], w.Register(v), distance)
		}
		all = do(all, others)
	}
	return all
}

// reduced combines the values of all threads of the block, always in the same order: each thread has the result. All threads
// must come here, and once: a call in a loop ends with a barrier of the caller.
func (w *writer) reduced(threads int, thread value, all []value, do combine) []value {
	all = w.warpReduced(min(threads, warpThreads), all, do)
	warps := threads / warpThreads
	if warps <= 1 {
		return all
	}
	base := w.sharedWords(warps * len(all))
	lane := w.Op2(code.And32, thread, code.U32(warpThreads-1))
	warp := w.Op2(code.ShrU32, thread, code.U32(5))
	at := func(number value, part int) value {
		return w.sharedItem(base, w.Op2(code.AddS32, number, code.U32(uint32(part*warps)))) //nolint:gosec // small
	}
	w.If(w.Op2(code.EqS32, lane, code.U32(0)), func() {
		for i, v := range all {
			w.storeShared(at(warp, i), v)
		}
	})
	w.Barrier()
	other := w.Op2(code.And32, lane, code.U32(uint32(warps-1))) //nolint:gosec // small
	mine := make([]value, len(all))
	for i := range mine {
		mine[i] = w.loadShared(at(other, i))
	}
	return w.warpReduced(warps, mine, do)
}
