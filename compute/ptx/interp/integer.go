package interp

import (
	"math/bits"

	"github.com/go-vram/vram/compute/ptx"
)

// mask has so many ones.
func mask(bits int) uint64 { return 1<<bits - 1 }

// integer says how the bits of an integer type are read.
type integer struct {
	width  int
	signed bool
}

func integerOf(t ptx.Type) integer { return integer{t.Bits(), t.Class() == ptx.Signed} }

// value returns the number as 64 bits: with its sign, or with zeros above.
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

// bounds returns the smallest and the largest number of a signed type.
func (t integer) bounds() (least, most int64) {
	return -1 << (t.width - 1), 1<<(t.width-1) - 1
}

// saturate cuts a sum or difference of two 32-bit numbers to the range of the type.
func (t integer) saturate(v int64) uint64 {
	least, most := t.bounds()
	return t.pack(min(max(v, least), most))
}

func choose(yes bool, a, b uint64) uint64 {
	if yes {
		return a
	}
	return b
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

// high returns the upper half of a product.
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
