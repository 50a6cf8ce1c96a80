package elementary

import "github.com/go-vram/vram/compute/kernel/internal/code"

// split returns a positive number as 2^i*m with m at or above the limit: limit has the bits of a number between 1/2 and 1.
func (m m) split(x value, limit uint32) (i, mantissa value) {
	small := m.lt(x, number(1.175494351e-38))
	x = m.pick(small, m.mul(x, number(8388608)), x)
	e := m.bits(m.subInt(x, code.U32(limit)), 0xff800000)
	i = m.fma(m.Op1(code.F32FromS32, e), number(1.19209290e-7), m.pick(small, number(-23), number(0)))
	return i, m.subInt(x, e)
}

// log1pNear is the polynomial r with log(1+x) = x + r*x² for x from -1/3 to 1/3, and x².
func (m m) log1pNear(x value) (r, square value) {
	s := m.mul(x, x)
	r = m.poly(number(-0.130310059), s, -0.121483512, -0.166846126, -0.249996200)
	t := m.poly(number(0.140869141), s, 0.139814854, 0.200120345)
	return m.poly(m.fma(t, x, r), x, 0.333331972, -0.5), s
}

// logSpecial is r, but the special value of a logarithm for 0, negative numbers, infinity and NaN.
func (m m) logSpecial(x, zero, r value) value {
	r = m.pick(m.lt(x, infinity()), r, m.add(x, x))
	r = m.pick(m.lt(x, zero), nan(), r)
	return m.pick(m.eq(x, zero), m.neg(infinity()), r)
}

// BuildLog writes the natural logarithm.
func BuildLog(on code.Machine, x code.Value) code.Value {
	m := m{on}
	i, a := m.split(x, 0x3f2aaaab)
	a = m.sub(a, number(1))
	r, s := m.log1pNear(a)
	r = m.fma(r, s, a)
	r = m.fma(i, number(0.693147182), r)
	return m.logSpecial(x, number(0), r)
}

// BuildLog2 writes the logarithm to the base of 2.
func BuildLog2(on code.Machine, x code.Value) code.Value {
	m := m{on}
	i, a := m.split(x, 0x3f2aaaab)
	a = m.sub(a, number(1))
	r, s := m.log1pNear(a)
	p := m.mul(r, s)
	const by, byLow = 1.44269502, 1.92596303e-8 // 1/ln 2 in two floats
	t := m.mul(a, number(by))
	low := m.fma(p, number(by), m.fma(a, number(byLow), m.fma(a, number(by), m.neg(t))))
	h := m.add(i, t)
	r = m.add(h, m.add(m.add(m.sub(i, h), t), low))
	return m.logSpecial(x, number(0), r)
}

// BuildLog1p writes log(1+x).
func BuildLog1p(on code.Machine, x code.Value) code.Value {
	m := m{on}
	t := m.add(x, number(1))
	e := m.bits(m.subInt(t, code.U32(0x3f400000)), 0xff800000)
	a := m.subInt(x, e)
	s := m.subInt(number(4), e)
	a = m.add(a, m.fma(s, number(0.25), number(-1)))
	i := m.mul(m.Op1(code.F32FromS32, e), number(1.19209290e-7))
	s = m.mul(a, a)
	r := m.poly(number(-4.54559326e-2), s, -1.32279143e-1, -1.66416913e-1, -2.50001878e-1)
	t = m.poly(number(1.05529785e-1), s, 1.44911006e-1, 1.99886635e-1)
	r = m.poly(m.fma(t, a, r), a, 3.33335280e-1, -0.5)
	r = m.fma(r, s, a)
	r = m.fma(i, number(0.693147182), r)
	r = m.pick(m.eq(x, number(0)), x, r) // so that -0 stays
	return m.logSpecial(x, number(-1), r)
}

// logPair is log(x) in two floats, for a positive x.
func (m m) logPair(x value) (high, low value) {
	const ln2, ln2Low = 6.93147182e-1, -1.90465421e-9
	i, a := m.split(x, 0x3f3504f3)
	p := m.add(a, number(1))
	a = m.sub(a, number(1))
	r := m.div(number(1), p)
	q := m.mul(r, a)
	qLow := m.mul(r, m.fma(q, m.neg(a), m.fma(q, number(-2), a)))
	s := m.mul(q, q)
	r = m.poly(number(0.1293334960), s, 0.1419928074, 0.2000148296, 0.3333332539)
	t := m.fma(q, m.add(qLow, qLow), m.fma(q, q, m.neg(s)))
	p = m.mul(s, q)
	t = m.fma(s, qLow, m.fma(t, q, m.fma(s, q, m.neg(p))))
	s = m.fma(r, p, m.fma(r, t, qLow))
	r = m.add(q, q)
	t = m.fma(number(ln2), i, r)
	p = m.fma(number(-ln2), i, t)
	s = m.fma(number(ln2Low), i, m.fma(number(2), s, m.sub(r, p)))
	high = m.add(t, s)
	return high, m.add(m.sub(t, high), s)
}

// BuildPow writes x to the power of y.
func BuildPow(on code.Machine, x, y code.Value) code.Value {
	m := m{on}
	zero, one := number(0), number(1)
	size := m.abs(x)
	high, low := m.logPair(size)
	t := m.mul(high, y)
	tLow := m.fma(low, y, m.fma(high, y, m.neg(t)))
	beyond := m.gt(m.abs(t), number(104))
	limit := m.eq(t, number(88.7228394)) // exp of it overflows, and exp(t+tLow) may not
	t = m.pick(limit, number(88.7228317), t)
	tLow = m.pick(limit, m.add(tLow, number(7.62939453e-06)), tLow)
	r := m.expNear(t)
	r = m.pick(m.eq(r, infinity()), r, m.fma(r, tLow, r))
	r = m.pick(beyond, m.pick(m.gt(t, zero), infinity(), zero), r)

	floor := m.Op1(code.FloorF32, y)
	odd := m.eq(m.fma(number(-2), m.Op1(code.FloorF32, m.mul(number(0.5), y)), y), one)
	negative := m.lt(x, zero)
	// The size of the result where one argument is infinite or x is 0.
	rises := m.not(m.lt(y, zero))
	r = m.pick(m.eq(size, infinity()), m.pick(rises, infinity(), zero), r)
	r = m.pick(m.eq(x, zero), m.pick(rises, zero, infinity()), r)
	r = m.pick(m.and(negative, m.and(m.Op2(code.NeF32, y, floor), m.lt(size, infinity()))), nan(), r)
	grows := m.Op2(code.XorPred, m.lt(size, one), rises)
	r = m.pick(m.eq(m.abs(y), infinity()), m.pick(m.eq(size, one), one, m.pick(grows, infinity(), zero)), r)
	r = m.pick(odd, m.signed(m.pick(m.Op2(code.NanF32, r, r), zero, m.abs(r)), x), r)
	r = m.pick(m.Op2(code.NanF32, x, y), nan(), r)
	return m.pick(m.or(m.eq(x, one), m.eq(y, zero)), one, r)
}

// BuildRsqrt writes 1/sqrt(x).
func BuildRsqrt(on code.Machine, x code.Value) code.Value {
	return on.Op2(code.DivF32, number(1), on.Op1(code.SqrtF32, x))
}
