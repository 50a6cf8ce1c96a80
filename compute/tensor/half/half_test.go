package half_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor/half"
)

// format has one of the formats as functions on bits, and its fields.
type format struct {
	of                 func(float32) uint16
	to                 func(uint16) float32
	exponent, fraction int
}

func formats() map[string]format {
	return map[string]format{
		"float16":  {func(x float32) uint16 { return uint16(half.NewFloat16(x)) }, func(b uint16) float32 { return half.Float16(b).Float32() }, 5, 10},
		"bfloat16": {func(x float32) uint16 { return uint16(half.NewBFloat16(x)) }, func(b uint16) float32 { return half.BFloat16(b).Float32() }, 8, 7},
	}
}

// value is the meaning of the bits, by the definition of the format.
func (f format) value(bits uint16) float64 {
	sign := 1.0
	if bits>>15 != 0 {
		sign = -1
	}
	exponent := int(bits>>f.fraction) & (1<<f.exponent - 1)
	fraction := float64(bits & (1<<f.fraction - 1))
	bias := 1<<(f.exponent-1) - 1
	scale := math.Ldexp(1, -f.fraction)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction*scale, 1-bias)
	case 1<<f.exponent - 1:
		if fraction != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1+fraction*scale, exponent-bias)
}

// Each of the 2^16 numbers is the one of the definition, and comes back from float32 as it was.
func TestEveryNumberIsExact(t *testing.T) {
	for name, f := range formats() {
		for i := range 1 << 16 {
			bits := uint16(i)
			want, got := f.value(bits), float64(f.to(bits))
			if math.IsNaN(want) {
				require.True(t, math.IsNaN(got), "%s %#x", name, bits)
				back := f.of(f.to(bits))
				require.True(t, math.IsNaN(f.value(back)), "%s %#x", name, bits)
				require.Equal(t, bits>>15, back>>15, "%s %#x: the sign", name, bits)
				continue
			}
			if want != got || f.of(f.to(bits)) != bits {
				require.FailNow(t, "not exact", "%s %#x: %v, %v", name, bits, got, want)
			}
		}
	}
}

// rounds reports whether a conversion is as the definition has it: no other number is nearer, and of two that
// are as near it is the even one.
func (f format) rounds(x float32) bool {
	got := f.of(x)
	if math.IsNaN(float64(x)) {
		return math.IsNaN(f.value(got))
	}
	infinite := uint16(1<<f.exponent-1) << f.fraction
	size := got & 0x7fff
	if size > infinite || math.Signbit(float64(x)) != (got>>15 != 0) {
		return false
	}
	at := func(size uint16) float64 {
		if size == infinite { // as if the exponents continued
			return math.Ldexp(1, 1<<(f.exponent-1))
		}
		return f.value(size)
	}
	want := math.Abs(float64(x))
	if size == infinite {
		return want >= (at(infinite-1)+at(infinite))/2
	}
	distance := math.Abs(at(size) - want)
	for _, other := range []uint16{size - 1, size + 1} {
		if other > infinite {
			continue // below zero
		}
		theirs := math.Abs(at(other) - want)
		if theirs < distance || theirs == distance && size&1 != 0 {
			return false
		}
	}
	return true
}

// Each number, each middle of two, and the float32 next to them on both sides are rounded to the nearest, and
// to even; so are random ones.
func TestConversionsRoundToTheNearest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, f := range formats() {
		t.Run(name, func(t *testing.T) {
			for i := range 1 << 15 {
				at, next := f.value(uint16(i)), f.value(uint16(i+1))
				for _, x := range []float64{at, (at + next) / 2} {
					exact := float32(x)
					for _, y := range []float32{exact, math.Nextafter32(exact, float32(math.Inf(1))), math.Nextafter32(exact, float32(math.Inf(-1)))} {
						if !f.rounds(y) || !f.rounds(-y) {
							require.FailNow(t, "not the nearest", "%v: %#x", y, f.of(y))
						}
					}
				}
			}
			for range 200_000 {
				if x := math.Float32frombits(random.Uint32()); !f.rounds(x) {
					require.FailNow(t, "not the nearest", "%v: %#x", x, f.of(x))
				}
			}
		})
	}
}

func TestHalvesAreShortInPrint(t *testing.T) {
	assert.Equal(t, "0.1", half.NewFloat16(0.1).String())
	assert.Equal(t, "6.55e+04", half.NewFloat16(65504).String())
	assert.Equal(t, "0.3", half.NewBFloat16(0.3).String())
	assert.Equal(t, "+Inf", half.NewFloat16(1e6).String())
	assert.Equal(t, "NaN", half.NewBFloat16(float32(math.NaN())).String())
	assert.Equal(t, "-0", half.NewFloat16(float32(math.Copysign(0, -1))).String())
}
