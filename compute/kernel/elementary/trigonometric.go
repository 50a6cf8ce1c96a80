package elementary

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/internal/code"
)

// nearLimit is up to where multiples of π/2 in three floats are exact enough.
const nearLimit = 48039

// reduced is x less the nearest multiple of π/2, and in the two low bits of quadrant which multiple it was.
func (m m) reduced(x value) (r, quadrant value) {
	j := m.fma(x, number(0.636619747), number(magic))
	n := m.sub(j, number(magic))
	r = m.fma(n, number(-1.57079601e+00), x)
	r = m.fma(n, number(-3.13916473e-07), r)
	r = m.fma(n, number(-5.39030253e-15), r)
	far := m.gt(m.abs(x), number(nearLimit))
	// Both come from the rare branch as one value of 64 bits.
	both := m.Rare(far, m.Op2(code.U64FromHalves, r, j), func() value {
		r, q := m.reducedFar(x)
		return m.Op2(code.U64FromHalves, r, q)
	})
	return m.Op1(code.U32FromU64, both), m.Op1(code.U32FromHi, both)
}

// reducedFar multiplies by 96 bits of 2/π, those that matter for the exponent.
func (m m) reducedFar(x value) (r, quadrant value) {
	digits := [...]uint32{0, 0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410, 0}
	a := m.Op2(code.Or32, m.Op2(code.Shl32, m.bits(x, 0x7fffff), code.U32(8)), code.U32(sign))
	e := m.subInt(m.bits(m.Op2(code.ShrU32, x, code.U32(23)), 0xff), code.U32(126))
	from := m.Op2(code.ShrU32, e, code.U32(5))
	e = m.bits(e, 31)
	rest := m.subInt(code.U32(32), e)
	word := func(at uint32) value {
		w := code.U32(digits[at])
		for i := uint32(1); i+at < uint32(len(digits)) && i <= 4; i++ {
			w = m.pick(m.Op2(code.EqS32, from, code.U32(i)), code.U32(digits[i+at]), w)
		}
		return w
	}
	words := [4]value{word(0), word(1), word(2), word(3)}
	shifted := func(at int) value {
		return m.Op2(code.Or32, m.Op2(code.Shl32, words[at], e), m.Op2(code.ShrU32, words[at+1], rest))
	}
	p := m.Op2(code.ShrU64, m.Op2(code.MulWideU32, a, shifted(2)), code.U32(32))
	p = m.Op2(code.AddS64, m.Op2(code.MulWideU32, a, shifted(1)), p)
	p = m.Op2(code.AddS64, m.Op2(code.U64FromHalves, code.U32(0), m.Op2(code.MulS32, a, shifted(0))), p)
	// The quadrant is rounded: the two high bits of p plus 1/2.
	q := m.Op2(code.ShrU32, m.addInt(m.Op1(code.U32FromHi, p), code.U32(1<<29)), code.U32(30))
	p = m.Op2(code.SubS64, p, m.Op2(code.U64FromHalves, code.U32(0), m.Op2(code.Shl32, q, code.U32(30))))
	d := m.Op2(code.MulF64, m.Op1(code.F64FromS64, p), code.F64(math.Pi/2/(1<<62)))
	r = m.Op1(code.F32FromF64, d)
	negative := m.lt(x, number(0))
	return m.pick(negative, m.neg(r), r), m.pick(negative, m.Op1(code.NegS32, q), q)
}

// wave is the sine of r if quadrant is 0, its cosine if it is 1, and so on.
func (m m) wave(r, quadrant value) value {
	s := m.mul(r, r)
	c := m.poly(number(2.44677067e-5), s, -1.38877297e-3, 4.16666567e-2, -0.5, 1)
	sine := m.poly(number(2.86567956e-6), s, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1)
	sine = m.fma(sine, m.mul(r, s), r)
	odd := m.Op2(code.NeS32, m.bits(quadrant, 1), code.U32(0))
	w := m.pick(odd, c, sine)
	return m.Op2(code.Xor32, w, m.Op2(code.Shl32, m.bits(quadrant, 2), code.U32(30)))
}

// BuildSin writes the sine.
func BuildSin(on code.Machine, x code.Value) code.Value {
	m := m{on}
	r, q := m.reduced(x)
	w := m.pick(m.eq(x, number(0)), x, m.wave(r, q)) // so that -0 stays
	return m.pick(m.lt(m.abs(x), infinity()), w, nan())
}

// BuildCos writes the cosine.
func BuildCos(on code.Machine, x code.Value) code.Value {
	m := m{on}
	r, q := m.reduced(x)
	return m.pick(m.lt(m.abs(x), infinity()), m.wave(r, m.addInt(q, code.U32(1))), nan())
}
