package interp

import (
	"math/bits"

	"github.com/go-vram/vram/compute/ptx"
)

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
		c.to.run = apply1(d, s[0], f1)
	case f2 != nil:
		if c.to.run = hot2(i, d, s[0], s[1]); c.to.run == nil {
			c.to.run = apply2(d, s[0], s[1], f2)
		}
	case f3 != nil:
		if c.to.run = hot3(i, d, s[0], s[1], s[2]); c.to.run == nil {
			c.to.run = apply3(d, s[0], s[1], s[2], f3)
		}
	}
}

// twice is the integer of twice the width.
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

// integer says how the bits of an integer type are read.
type integer struct {
	width  int
	signed bool
}

func integerOf(t ptx.Type) integer { return integer{t.Bits(), t.Class() == ptx.Signed} }

// value is the number as 64 bits: with its sign, or with zeros above.
func (t integer) value(v uint64) int64 { return signExtend(v, t.width, t.signed) }

func signExtend(v uint64, width int, signed bool) int64 {
	shift := 64 - width
	if signed {
		return int64(v<<shift) >> shift //nolint:gosec // in two's complement
	}
	return int64(v << shift >> shift) //nolint:gosec // in two's complement
}

// pack cuts a number to the type.
func (t integer) pack(v int64) uint64 { return uint64(v) & mask(t.width) } //nolint:gosec // in two's complement

// less compares two numbers of the type.
func (t integer) less(a, b uint64) bool {
	if t.signed {
		return t.value(a) < t.value(b)
	}
	return a&mask(t.width) < b&mask(t.width)
}

// low is the smallest and the largest number of a signed type.
func (t integer) bounds() (least, most int64) {
	return -1 << (t.width - 1), 1<<(t.width-1) - 1
}

// saturate is a sum or difference of two numbers of 32 bits, cut to the range of the type.
func (t integer) saturate(v int64) uint64 {
	least, most := t.bounds()
	return t.pack(min(max(v, least), most))
}

// integerFunction is the function of an instruction on integers.
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

func choose(yes bool, a, b uint64) uint64 {
	if yes {
		return a
	}
	return b
}

func integerSum(t integer, sat bool, sign int64) func2 {
	if sat {
		return func(a, b uint64) uint64 { return t.saturate(t.value(a) + sign*t.value(b)) }
	}
	return func(a, b uint64) uint64 { return t.pack(t.value(a) + sign*t.value(b)) }
}

// product is mul.lo, mul.hi or mul.wide.
func (t integer) product(i *ptx.Instruction) func2 {
	switch {
	case i.Has(ptx.ModWide):
		wide := integer{width: 2 * t.width} //nolint:mnd // twice as wide
		return func(a, b uint64) uint64 { return wide.pack(t.value(a) * t.value(b)) }
	case i.Has(ptx.ModHi):
		return t.high
	default:
		return func(a, b uint64) uint64 { return t.pack(t.value(a) * t.value(b)) }
	}
}

// high is the upper half of a product.
func (t integer) high(a, b uint64) uint64 {
	if t.width < 64 { //nolint:mnd // the product fits
		if t.signed {
			return t.pack(t.value(a) * t.value(b) >> t.width)
		}
		return a * b >> t.width & mask(t.width)
	}
	hi, _ := bits.Mul64(a, b)
	if t.signed {
		hi -= choose(int64(a) < 0, b, 0) + choose(int64(b) < 0, a, 0) //nolint:gosec // in two's complement
	}
	return hi
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
