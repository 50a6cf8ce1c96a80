package interp

import (
	"math"

	"github.com/go-vram/vram/compute/ptx"
)

// The bits of NaN as the hardware makes it.
const (
	nanF32 = 0x7fffffff
	nanF64 = 0x7ff8000000000000
	nanF16 = 0x7fff
)

// format is a binary floating-point format.
type format struct {
	precision int // bits of the significand, the hidden one included
	minExp    int // exponent of the smallest normal number
	maxExp    int // of the largest
}

//nolint:gochecknoglobals // constant formats
var (
	formatF16  = format{11, -14, 15}
	formatBF16 = format{8, -126, 127}
	formatF32  = format{24, -126, 127}
	formatTF32 = format{11, -126, 127}
)

// round rounds a number to a format. A number that is rounded to odd beforehand, with two more bits at least, is rounded once.
func (t format) round(x float64, mode ptx.Modifier) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	exponent := int(math.Float64bits(x)>>52&0x7ff) - 1023 //nolint:gosec,mnd // 11 bits; the bias
	step := max(exponent, t.minExp) - (t.precision - 1)
	r := roundInteger(x*power(-step), mode) * power(step)
	if limit := (2 - power(1-t.precision)) * power(t.maxExp); math.Abs(r) > limit {
		return overflow(x, limit, mode)
	}
	return r
}

// power returns a power of two that is a normal number.
func power(n int) float64 { return math.Float64frombits(uint64(n+1023) << 52) } //nolint:gosec,mnd // the bias

// overflow returns the result of rounding a number beyond the largest one.
func overflow(x, limit float64, mode ptx.Modifier) float64 {
	if mode == ptx.ModRz || mode == ptx.ModRm && x > 0 || mode == ptx.ModRp && x < 0 {
		return math.Copysign(limit, x)
	}
	return math.Inf(int(math.Copysign(1, x)))
}

// roundInteger rounds to an integer as the modifier says: .rn and .rni to the nearest and even.
func roundInteger(x float64, mode ptx.Modifier) float64 {
	switch mode {
	case ptx.ModRz, ptx.ModRzi:
		return math.Trunc(x)
	case ptx.ModRm, ptx.ModRmi:
		return math.Floor(x)
	case ptx.ModRp, ptx.ModRpi:
		return math.Ceil(x)
	case ptx.ModRna:
		return math.Round(x)
	default:
		return math.RoundToEven(x)
	}
}

// odd returns the sum of two numbers, rounded to odd: where it is not exact its last bit is set, so that rounding it again to fewer
// bits is right.
func odd(a, b float64) float64 {
	s := a + b
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return s
	}
	v := s - a
	return stick(s, (a-(s-v))+(b-v))
}

// stick makes a rounded number odd, which rest is the difference of to the exact one.
func stick(s, rest float64) float64 {
	if rest == 0 || s == 0 {
		return s
	}
	word := math.Float64bits(s)
	if (rest < 0) == (s > 0) { // the exact number is closer to zero
		word--
	}
	return math.Float64frombits(word | 1)
}

// fma32 returns a*b+c, rounded once.
func fma32(a, b, c float32) float32 {
	product := float64(a) * float64(b) // exact
	s := product + float64(c)
	if roundsTwice(s) {
		s = odd(product, float64(c))
	}
	return float32(s)
}

// roundsTwice reports whether single precision may not be the nearest to an exact sum, although it is to the rounded one: the sum is a tie
// there, or close to subnormal numbers, which have fewer bits.
func roundsTwice(s float64) bool {
	const half, low = 1 << 28, 1<<29 - 1
	word := math.Float64bits(s)
	return word&low == half || math.Abs(s) < 0x1p-125 && s != 0
}

// f32 returns the number with those bits.
func f32(v uint64) float32 { return math.Float32frombits(uint32(v)) } //nolint:gosec // the upper half is empty

// bits32 returns the bits of a number; NaN has one form.
func bits32(v float32) uint64 {
	if v != v { //nolint:gocritic // NaN
		return nanF32
	}
	return uint64(math.Float32bits(v))
}
