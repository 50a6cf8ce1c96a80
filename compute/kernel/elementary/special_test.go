package elementary_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/compute/kernel/elementary"
)

// Zeros keep their sign where the function is odd; infinities, NaN, denormal numbers and the largest ones have the results of C.
func TestSpecialNumbersOfFunctions(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	specials := []float64{
		0, math.Copysign(0, -1), inf, -inf, nan, 1, -1, 0x1p-149, -0x1p-149, 0x1p-127, -0x1p-127, 0x1p-126, -0x1p-126,
		math.MaxFloat32, -math.MaxFloat32, 88.7, -88.7, 104, -104, -150, 1e-20, -1e-20,
	}
	for _, f := range functions() {
		for _, x := range specials {
			got, want := float64(f.of(float32(x))), f.reference(float64(float32(x)))
			if math.IsNaN(want) {
				assert.True(t, math.IsNaN(got), "%s(%v) is %v, not NaN", f.name, x, got)
				continue
			}
			assert.LessOrEqual(t, ulps(float32(got), want), f.limitUlp, "%s(%v) is %v, not %v", f.name, x, got, want)
			if got == 0 {
				assert.Equal(t, math.Signbit(want), math.Signbit(got), "the sign of %s(%v)", f.name, x)
			}
		}
	}
	for name, odd := range map[string]func(float32) float32{
		"sin": elementary.Sin, "tanh": elementary.Tanh, "erf": elementary.Erf, "expm1": elementary.Expm1, "log1p": elementary.Log1p,
	} {
		assert.True(t, math.Signbit(float64(odd(float32(math.Copysign(0, -1))))), "%s(-0)", name)
		assert.False(t, math.Signbit(float64(odd(0))), "%s(0)", name)
	}
}
