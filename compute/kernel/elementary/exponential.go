package elementary

import "github.com/go-vram/vram/compute/kernel/internal/code"

// scaled is r*2^i for the i of which the bits of j, magic+i, have the low ones. r is near 1, and i from -151 to 129.
func (m m) scaled(r, j value) value {
	i := m.Op2(code.Shl32, j, code.U32(23))
	half := m.pick(m.gt(j, number(magic)), code.U32(0), code.U32(0x83000000))
	r = m.mul(r, m.addInt(half, code.U32(0x7f000000)))
	return m.mul(r, m.subInt(i, half))
}

// BuildExp writes exp(x).
func BuildExp(on code.Machine, x code.Value) code.Value {
	m := m{on}
	r := m.expNear(x)
	return m.pick(m.ge(m.abs(x), number(104)), m.pick(m.gt(x, number(0)), infinity(), number(0)), r)
}

// expNear is exp(x) for x between -104 and 104.
func (m m) expNear(x value) value { return m.scaled(m.expReduced(x)) }

// expReduced is r and j, of which scaled makes exp(x).
func (m m) expReduced(x value) (r, j value) {
	j = m.fma(x, number(1.442695), number(magic))
	n := m.sub(j, number(magic))
	f := m.fma(n, number(-6.93145752e-1), x)
	f = m.fma(n, number(-1.42860677e-6), f)
	return m.poly(number(1.37805939e-3), f, 8.37312452e-3, 4.16695364e-2, 1.66664720e-1, 4.99999851e-1, 1, 1), j
}

// BuildExpBelow writes exp(x) for an x that is not positive, with fewer instructions: the same bits as BuildExp.
func BuildExpBelow(on code.Machine, x code.Value) code.Value {
	m := m{on}
	x = m.pick(m.lt(x, number(-104)), number(-104), x)
	r, j := m.expReduced(x)
	// The power of 2 is 2^64 times too large, so that it is no denormal number, and the last product alone is rounded.
	r = m.mul(r, m.addInt(m.Op2(code.Shl32, j, code.U32(23)), code.U32((127+64)<<23)))
	return m.mul(r, number(0x1p-64))
}

// BuildExp2 writes 2^x.
func BuildExp2(on code.Machine, x code.Value) code.Value {
	m := m{on}
	j := m.add(x, number(magic))
	f := m.sub(x, m.sub(j, number(magic)))
	r := m.poly(number(1.53920364e-4), f, 1.33904815e-3, 9.61817801e-3, 5.55034280e-2, 2.40226507e-1, 6.93147182e-1, 1)
	r = m.scaled(r, j)
	return m.pick(m.ge(m.abs(x), number(152)), m.pick(m.gt(x, number(0)), infinity(), number(0)), r)
}

// BuildExpm1 writes exp(x)-1.
func BuildExpm1(on code.Machine, x code.Value) code.Value {
	m := m{on}
	j := m.fma(x, number(1.442695), number(magic))
	n := m.sub(j, number(magic))
	f := m.fma(n, number(-6.93145752e-1), x)
	f = m.fma(n, number(-1.42860677e-6), f)
	s := m.pick(m.eq(x, number(0)), x, m.mul(f, f)) // so that -0 stays
	r := m.poly(number(1.97350979e-4), f, 1.39309070e-3, 8.33343994e-3, 4.16668020e-2, 1.66666716e-1, 4.99999970e-1)
	one := m.eq(n, number(1))
	v := m.fma(r, s, m.pick(one, m.add(f, number(0.5)), f))
	t := m.addInt(m.Op2(code.Shl32, j, code.U32(23)), code.U32(126<<23)) // 2^(n-1)
	y := m.sub(t, number(0.5))
	rest := m.sub(m.sub(t, y), number(0.5))
	r = m.add(m.fma(v, t, rest), y)
	r = m.add(r, r)
	r = m.pick(m.eq(n, number(0)), v, r)
	r = m.pick(one, m.add(v, v), r)
	r = m.pick(m.gt(x, number(88.722839)), infinity(), r)
	return m.pick(m.lt(x, number(-20)), number(-1), r)
}

// BuildTanh writes the hyperbolic tangent.
func BuildTanh(on code.Machine, x code.Value) code.Value {
	m := m{on}
	t := m.abs(x)
	s := m.mul(t, t)
	near := m.poly(number(1.57394409e-2), s, -5.23025580e-2, 1.33152470e-1, -3.33327681e-1)
	near = m.fma(m.mul(near, s), t, t)
	e := m.expNear(m.Op2(code.MinF32, m.add(t, t), number(30)))
	far := m.sub(number(1), m.div(number(2), m.add(e, number(1))))
	r := m.signed(m.pick(m.lt(t, number(0.55)), near, far), x) // so that -0 stays
	return m.pick(m.Op2(code.NanF32, x, x), x, r)
}

// BuildErf writes the error function.
func BuildErf(on code.Machine, x code.Value) code.Value {
	m := m{on}
	t := m.Op2(code.MinF32, m.abs(x), number(4))
	s := m.mul(t, t)
	far := m.fma(number(-1.72853470e-5), t, number(3.83197126e-4))
	far = m.fma(far, s, m.fma(number(-3.88396438e-3), t, number(2.42546219e-2)))
	far = m.poly(far, t, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1)
	far = m.fma(far, t, m.neg(t))
	far = m.signed(m.sub(number(1), m.expNear(far)), x)
	near := m.poly(number(-5.96761703e-4), s, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
	near = m.fma(near, x, x)
	r := m.pick(m.gt(t, number(0.927734375)), far, near)
	return m.pick(m.Op2(code.NanF32, x, x), x, r)
}
