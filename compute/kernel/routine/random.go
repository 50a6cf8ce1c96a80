package routine

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/elementary"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// The numbers of Philox 4x32: multipliers of the rounds, and those that are added to the key after each.
const (
	philoxM0     = 0xd2511f53
	philoxM1     = 0xcd9e8d57
	philoxW0     = 0x9e3779b9
	philoxW1     = 0xbb67ae85
	philoxRounds = 10
)

// buildPhilox computes four random words of a counter and a key.
func buildPhilox(m code.Machine, counter [4]value, key [2]value) [4]value {
	for range philoxRounds {
		high0, low0 := m.Op2(code.MulHiU32, counter[0], code.U32(philoxM0)), m.Op2(code.MulS32, counter[0], code.U32(philoxM0))
		high1, low1 := m.Op2(code.MulHiU32, counter[2], code.U32(philoxM1)), m.Op2(code.MulS32, counter[2], code.U32(philoxM1))
		counter = [4]value{
			m.Op2(code.Xor32, m.Op2(code.Xor32, high1, counter[1]), key[0]), low1,
			m.Op2(code.Xor32, m.Op2(code.Xor32, high0, counter[3]), key[1]), low0,
		}
		key = [2]value{m.Op2(code.AddS32, key[0], code.U32(philoxW0)), m.Op2(code.AddS32, key[1], code.U32(philoxW1))}
	}
	return counter
}

// Philox are the four random words of a counter and a key, by Philox 4x32-10.
func Philox(counter [4]uint32, key [2]uint32) (words [4]uint32) {
	var c [4]value
	for i := range c {
		c[i] = code.U32(counter[i])
	}
	for i, v := range buildPhilox(code.Evaluator{}, c, [2]value{code.U32(key[0]), code.U32(key[1])}) {
		words[i] = uint32(v.Bits) //nolint:gosec // of 32 bits
	}
	return words
}

// computed is the type in which a type is computed.
func computed(of tensor.Type) tensor.Type {
	if of == tensor.Float64 {
		return of
	}
	return tensor.Float32
}

// wordBits is how many bits of a word are a number below 1 of a type without rounding.
func wordBits(of tensor.Type) int {
	switch of { //nolint:exhaustive // floating-point types below 64 bits
	case tensor.Float16:
		return 11
	case tensor.BFloat16:
		return 8
	}
	return 24
}

// uniform are four numbers from 0 to below 1: of as many words, or of eight for float64.
func uniform(m code.Machine, of tensor.Type, words []value) []value {
	all := make([]value, GroupLen)
	for i := range all {
		if of == tensor.Float64 {
			both := m.Op2(code.ShrU64, m.Op2(code.U64FromHalves, words[2*i], words[2*i+1]), code.U32(64-53))
			all[i] = m.Op2(code.MulF64, m.Op1(code.F64FromS64, both), code.F64(math.Ldexp(1, -53)))
			continue
		}
		bits := wordBits(of)
		high := m.Op2(code.ShrU32, words[i], code.U32(uint32(32-bits)))                                    //nolint:gosec // small
		all[i] = m.Op2(code.MulF32, m.Op1(code.F32FromU32, high), code.F32(float32(math.Ldexp(1, -bits)))) // both exact
	}
	return all
}

// normal are four numbers of the normal distribution, by the method of Box and Muller.
func normal(m code.Machine, words []value) []value {
	var all []value
	unit := func(word value) value { // above 0, and up to 1
		return m.Op3(code.FmaF32, m.Op1(code.F32FromU32, word), code.F32(float32(math.Ldexp(1, -32))), code.F32(float32(math.Ldexp(1, -33))))
	}
	for i := 0; i < GroupLen; i += 2 {
		square := m.Op2(code.MulF32, elementary.BuildLog(m, unit(words[i])), code.F32(-2))
		radius := m.Op1(code.SqrtF32, square)
		angle := m.Op2(code.MulF32, unit(words[i+1]), code.F32(2*math.Pi))
		all = append(all, m.Op2(code.MulF32, radius, elementary.BuildCos(m, angle)), m.Op2(code.MulF32, radius, elementary.BuildSin(m, angle)))
	}
	return all
}

// Standard are the GroupLen elements of a group of Uniform from 0 to 1, or of Normal with mean 0 and deviation 1, on the host,
// before they are rounded to a type of 16 bits.
func Standard(kind Kind, of tensor.Type, seed, stream, offset, group uint64) (numbers [GroupLen]float64) {
	from := func(x uint64) value { return code.U64(x) }
	for i, v := range standard(code.Evaluator{}, kind, of, from(seed), from(stream), from(offset), from(group)) {
		if computed(of) == tensor.Float64 {
			numbers[i] = v.AsFloat64()
		} else {
			numbers[i] = float64(v.AsFloat32())
		}
	}
	return numbers
}

// standard are the elements of a group before they are scaled.
func standard(m code.Machine, kind Kind, of tensor.Type, seed, stream, offset, group value) []value {
	halves := func(v value) [2]value {
		return [2]value{m.Op1(code.U32FromU64, v), m.Op1(code.U32FromU64, m.Op2(code.ShrU64, v, code.U32(32)))}
	}
	key, high := halves(seed), halves(stream)
	block := func(number value) []value {
		low := halves(m.Op2(code.AddS64, offset, number))
		words := buildPhilox(m, [4]value{low[0], low[1], high[0], high[1]}, key)
		return words[:]
	}
	switch {
	case kind == Normal:
		all := normal(m, block(group))
		if of == tensor.Float64 {
			for i, v := range all {
				all[i] = m.Op1(code.F64FromF32, v)
			}
		}
		return all
	case of == tensor.Float64:
		first := m.Op2(code.Shl64, group, code.U32(1))
		return uniform(m, of, append(block(first), block(m.Op2(code.AddS64, first, code.U64(1)))...))
	}
	return uniform(m, of, block(group))
}

// random writes Uniform and Normal.
func (w *writer) random() {
	of := w.Of[0]
	count, shape, out := w.size(), w.sizes(w.Rank), w.operand()
	seed, stream, offset, ahead := w.address(), w.address(), w.address(), w.address()
	bytes, fma := 4, code.FmaF32
	if of == tensor.Float64 {
		bytes, fma = 8, code.FmaF64
	}
	base, scale := w.Float(bytes), w.Float(bytes)
	group := w.thread()
	first := w.Mul(group, w.Constant(GroupLen))
	w.If(w.Less(first, count), func() {
		from := w.Variable(offset)
		w.If(w.Op2(code.NeS64, ahead, code.U64(0)), func() {
			more := w.New(code.B64)
			w.Line("ld.global.b64 %v, [%v]", more, ahead)
			w.Set(from, w.Op2(code.AddS64, offset, more))
		})
		number := group
		if !w.Wide {
			number = w.Op1(code.U64FromU32, group)
		}
		all := standard(w, w.Kind, of, seed, stream, w.Get(from), number)
		for i, v := range all {
			all[i] = w.Op3(fma, v, scale, base)
		}
		one := func() {
			for i, v := range all {
				at := w.Op2(w.Pick(code.AddS32, code.AddS64), first, w.Constant(i))
				w.If(w.Less(at, count), func() {
					w.Store(of, w.Address(out.at, w.place(out, w.Split(at, shape)), of.Size()), v)
				})
			}
		}
		if !w.Vector {
			one()
			return
		}
		whole := w.Less(w.Add(first, w.Constant(GroupLen-1)), count)
		w.If(whole, func() { w.Store(of, w.Address(out.at, w.Add(out.start, first), of.Size()), all...) })
		w.If(w.Op1(code.NotPred, whole), one)
	})
}
