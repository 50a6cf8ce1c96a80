// Package half implements the 16-bit floating-point numbers of GPUs on the host: Float16 is IEEE 754's
// binary16, and BFloat16 the upper half of a float32. Conversions from float32 round to the nearest
// number, ties to even; numbers beyond the largest one become infinite; a NaN stays one. Conversions to float32 are exact. Arithmetic is done in float32.
package half

import (
	"math"
	"strconv"

	"github.com/x448/float16"
)

// Float16 is a number of 1 bit of sign, 5 of exponent and 10 of fraction: up to 65504, and eleven bits of precision.
type Float16 uint16

// NewFloat16 rounds a number.
func NewFloat16(x float32) Float16 { return Float16(float16.Fromfloat32(x)) }

// Float32 returns the same number.
func (f Float16) Float32() float32 { return float16.Float16(f).Float32() }

// String returns the shortest decimal number that is rounded to this one.
func (f Float16) String() string {
	return shortest(f.Float32(), func(x float32) bool { return x != x || NewFloat16(x) == f })
}

// BFloat16 is a number of 1 bit of sign, 8 of exponent and 7 of fraction: the range of float32, and eight
// bits of precision.
type BFloat16 uint16

// NewBFloat16 rounds a number.
func NewBFloat16(x float32) BFloat16 {
	bits := math.Float32bits(x)
	if x != x { // rounding could make an infinity of it
		return BFloat16(bits>>16 | 1<<6)
	}
	return BFloat16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float32 returns the same number.
func (f BFloat16) Float32() float32 { return math.Float32frombits(uint32(f) << 16) }

// String returns the shortest decimal number that is rounded to this one.
func (f BFloat16) String() string {
	return shortest(f.Float32(), func(x float32) bool { return x != x || NewBFloat16(x) == f })
}

// shortest returns a number with as few digits as mean the same: 5 at most.
func shortest(x float32, same func(float32) bool) string {
	for digits := 1; ; digits++ {
		s := strconv.FormatFloat(float64(x), 'g', digits, 32)
		if y, err := strconv.ParseFloat(s, 32); err == nil && same(float32(y)) {
			return s
		}
	}
}
