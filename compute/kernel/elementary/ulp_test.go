package elementary_test

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/compute/kernel/elementary"
)

// function is a function under test: its limit is in the package comment.
type function struct {
	name      string
	of        func(float32) float32
	reference func(float64) float64
	limitUlp  float64
}

func functions() []function {
	return []function{
		{"exp", elementary.Exp, math.Exp, 0.9},
		{"expbelow", func(x float32) float32 { return elementary.ExpBelow(-abs(x)) }, func(x float64) float64 { return math.Exp(-math.Abs(x)) }, 0.9},
		{"exp2", elementary.Exp2, math.Exp2, 1.3},
		{"expm1", elementary.Expm1, math.Expm1, 1.1},
		{"log", elementary.Log, math.Log, 0.9},
		{"log2", elementary.Log2, math.Log2, 1.2},
		{"log1p", elementary.Log1p, math.Log1p, 0.9},
		{"sin", elementary.Sin, math.Sin, 1.6},
		{"cos", elementary.Cos, math.Cos, 1.6},
		{"tanh", elementary.Tanh, math.Tanh, 2.0},
		{"erf", elementary.Erf, math.Erf, 1.1},
		{"rsqrt", elementary.Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, 1.5},
	}
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

// ulps is the distance of a float32 from the exact result, in units of the last place of that.
func ulps(got float32, want float64) float64 {
	if rounded := float32(want); rounded == got || rounded != rounded && got != got {
		if rounded-rounded != 0 || rounded == 0 {
			return 0
		}
	}
	if got != got || want != want || math.IsInf(want, 0) {
		return math.Inf(1)
	}
	if math.IsInf(float64(got), 0) {
		got = float32(math.Copysign(math.MaxFloat32, float64(got)))
		return 0.5 + (math.Abs(want)-float64(math.Abs(float64(got))))*-1/0x1p104
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

// everyUlp is the greatest error over a function's inputs.
func everyUlp(f function, step uint32) (worst float64, at float32) {
	type result struct {
		worst float64
		at    float32
	}
	count := uint32(runtime.GOMAXPROCS(0))
	results := make([]result, count)
	var group sync.WaitGroup
	for part := range count {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(part)))
			for bits := uint64(part); bits < 1<<32; bits += uint64(count) * uint64(step) {
				input := uint32(bits)
				if step > 1 {
					input += count * random.Uint32N(step)
				}
				x := math.Float32frombits(input)
				if u := ulps(f.of(x), f.reference(float64(x))); u > results[part].worst {
					results[part] = result{u, x}
				}
			}
		})
	}
	group.Wait()
	for _, r := range results {
		if r.worst > worst {
			worst, at = r.worst, r.at
		}
	}
	return worst, at
}

// sampleStep is how many inputs a sample takes one of.
const sampleStep = 40009

func TestErrors(t *testing.T) {
	step := uint32(sampleStep)
	if os.Getenv("VRAM_ALL_FLOATS") != "" {
		step = 1
	} else if s, err := strconv.Atoi(os.Getenv("VRAM_FLOAT_STEP")); err == nil {
		step = uint32(s)
	}
	for _, f := range functions() {
		worst, at := everyUlp(f, step)
		t.Logf("%-6s %.4f ulp at %v (%#08x)", f.name, worst, at, math.Float32bits(at))
		assert.LessOrEqual(t, worst, f.limitUlp, "%s at %v: %v, not %v", f.name, at, f.of(at), f.reference(float64(at)))
	}
}

func TestPowError(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	worst, wx, wy := 0.0, float32(0), float32(0)
	for range 200000 {
		x := math.Float32frombits(random.Uint32() &^ (1 << 31))
		y := float32(random.NormFloat64()) * 100
		switch random.IntN(3) {
		case 0:
			y = math.Float32frombits(random.Uint32())
		case 1:
			x = 1 + float32(random.NormFloat64())*0.01
		}
		if x < 0 {
			x = -x
		}
		if u := ulps(elementary.Pow(x, y), math.Pow(float64(x), float64(y))); u > worst {
			worst, wx, wy = u, x, y
		}
	}
	t.Logf("pow    %.4f ulp at %v, %v", worst, wx, wy)
	assert.LessOrEqual(t, worst, 1.4, "pow(%v, %v) = %v, not %v", wx, wy, elementary.Pow(wx, wy), math.Pow(float64(wx), float64(wy)))
}

func TestPowOfSpecialNumbers(t *testing.T) {
	inf := float32(math.Inf(1))
	all := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1.5, -1.5, inf, -inf, float32(math.NaN()), 1e-45, -1e-45, 1 << 24, 1<<24 - 1, 3.4e38, -3.4e38}
	for _, x := range all {
		for _, y := range all {
			got, want := elementary.Pow(x, y), float32(math.Pow(float64(x), float64(y)))
			if want != want {
				assert.True(t, got != got, "pow(%v, %v) = %v, not NaN", x, y, got)
				continue
			}
			assert.LessOrEqual(t, ulps(got, math.Pow(float64(x), float64(y))), 1.4, "pow(%v, %v) = %v, not %v", x, y, got, want)
			assert.Equal(t, math.Signbit(float64(want)), math.Signbit(float64(got)), "sign of pow(%v, %v) = %v, not %v", x, y, got, want)
		}
	}
}

func TestTheShortExponentialHasTheSameBits(t *testing.T) {
	for bits := uint32(1 << 31); bits < 0xff800000; bits += 20011 {
		x := math.Float32frombits(bits)
		if want, got := elementary.Exp(x), elementary.ExpBelow(x); math.Float32bits(want) != math.Float32bits(got) {
			t.Fatalf("exp(%v): %v, not %v", x, got, want)
		}
	}
}
