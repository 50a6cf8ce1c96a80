package interp

import "github.com/go-vram/vram/compute/ptx"

// lowerArithmetic translates instructions that compute one result of one to three numbers.
func lowerArithmetic(c *lowering, i *ptx.Instruction) {
	if i.Has(ptx.ModCC) {
		lowerCarry(c, i)
		return
	}
	t := i.Type(0)
	result := t
	if i.Has(ptx.ModWide) {
		result = twice(t)
	}
	d := c.out(&i.Operands[0])
	var s [3]int
	for n := range i.Operands[1:] {
		of := t
		if n == 2 { //nolint:mnd // the addend
			of = result
		}
		s[n] = c.in(&i.Operands[n+1], of)
	}
	var f1 func1
	var f2 func2
	var f3 func3
	switch {
	case i.Op == ptx.OpDp4a:
		f3 = dp4a(i.Type(0) == ptx.S32, i.Type(1) == ptx.S32)
	case t.Class() != ptx.Float:
		f1, f2, f3 = integerFunction(i)
	case t == ptx.F32 || t == ptx.F64:
		f1, f2, f3 = floatFunction(i)
	default:
		f1, f2, f3 = halfFunction(i)
	}
	switch {
	case f1 != nil:
		c.to.compute = apply1(d, s[0], f1)
	case f2 != nil:
		if c.to.compute = hot2(i, d, s[0], s[1]); c.to.compute == nil {
			c.to.compute = apply2(d, s[0], s[1], f2)
		}
	case f3 != nil:
		if c.to.compute = hot3(i, d, s[0], s[1], s[2]); c.to.compute == nil {
			c.to.compute = apply3(d, s[0], s[1], s[2], f3)
		}
	}
}

// twice returns the integer of twice the width.
func twice(t ptx.Type) ptx.Type {
	switch t {
	case ptx.U16:
		return ptx.U32
	case ptx.S16:
		return ptx.S32
	case ptx.U32:
		return ptx.U64
	default:
		return ptx.S64
	}
}

// integerFunction returns the function of an instruction on integers.
func integerFunction(i *ptx.Instruction) (func1, func2, func3) {
	t := integerOf(i.Type(0))
	sat := i.Has(ptx.ModSat)
	switch i.Op {
	case ptx.OpAdd:
		return nil, integerSum(t, sat, 1), nil
	case ptx.OpSub:
		return nil, integerSum(t, sat, -1), nil
	case ptx.OpMul:
		return nil, t.product(i), nil
	case ptx.OpMad:
		return nil, nil, t.multiplyAdd(i, sat)
	case ptx.OpDiv:
		return nil, t.quotient, nil
	case ptx.OpRem:
		return nil, t.remainder, nil
	case ptx.OpMin:
		return nil, func(a, b uint64) uint64 { return choose(t.less(b, a), b, a) & mask(t.width) }, nil
	case ptx.OpMax:
		return nil, func(a, b uint64) uint64 { return choose(t.less(a, b), b, a) & mask(t.width) }, nil
	case ptx.OpAbs:
		return func(a uint64) uint64 { return t.pack(max(t.value(a), -t.value(a))) }, nil, nil
	case ptx.OpNeg:
		return func(a uint64) uint64 { return t.pack(-t.value(a)) }, nil, nil
	case ptx.OpSad:
		return nil, nil, func(a, b, c uint64) uint64 {
			if t.less(a, b) {
				a, b = b, a
			}
			return (a - b + c) & mask(t.width)
		}
	default:
		return nil, nil, nil
	}
}

func integerSum(t integer, sat bool, sign int64) func2 {
	if sat {
		return func(a, b uint64) uint64 { return t.saturate(t.value(a) + sign*t.value(b)) }
	}
	return func(a, b uint64) uint64 { return t.pack(t.value(a) + sign*t.value(b)) }
}

// multiplyAdd is mad.lo, mad.hi or mad.wide.
func (t integer) multiplyAdd(i *ptx.Instruction, sat bool) func3 {
	product := t.product(i)
	width := t.width
	if i.Has(ptx.ModWide) {
		width *= 2
	}
	if sat {
		return func(a, b, c uint64) uint64 { return t.saturate(t.value(product(a, b)) + t.value(c)) }
	}
	return func(a, b, c uint64) uint64 { return (product(a, b) + c) & mask(width) }
}

// quotient of a division by zero has all bits set, as on hardware; PTX leaves it open.
func (t integer) quotient(a, b uint64) uint64 {
	switch {
	case b&mask(t.width) == 0:
		return mask(t.width)
	case t.signed:
		return t.pack(t.value(a) / t.value(b)) // the smallest number by -1 wraps
	}
	return (a & mask(t.width)) / (b & mask(t.width))
}

// remainder has the sign of a; of a division by zero it is a.
func (t integer) remainder(a, b uint64) uint64 {
	switch {
	case b&mask(t.width) == 0:
		return a & mask(t.width)
	case t.signed:
		return t.pack(t.value(a) % t.value(b))
	}
	return (a & mask(t.width)) % (b & mask(t.width))
}

// dp4a adds the products of four bytes.
func dp4a(signedA, signedB bool) func3 {
	return func(a, b, c uint64) uint64 {
		sum := int64(c) //nolint:gosec // in two's complement
		for n := 0; n < 32; n += 8 {
			sum += signExtend(a>>n, 8, signedA) * signExtend(b>>n, 8, signedB) //nolint:mnd // a byte
		}
		return uint64(sum) & mask(32) //nolint:gosec,mnd // in two's complement
	}
}
