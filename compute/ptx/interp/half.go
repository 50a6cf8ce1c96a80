package interp

import (
	"math"

	"github.com/go-vram/vram/compute/ptx"
)

// half is arithmetic on f16 or bf16, alone or in pairs.
type half struct {
	brain     bool // bf16
	pair      bool
	ftz, sat  bool
	relu      bool
	canonical uint64 // NaN
}

func halfOf(t ptx.Type, i *ptx.Instruction) half {
	h := half{brain: t == ptx.BF16 || t == ptx.BF16x2, pair: t.Lanes() == 2, canonical: nanF16} //nolint:mnd // a pair
	if i != nil {
		h.ftz, h.sat, h.relu = i.Has(ptx.ModFtz), i.Has(ptx.ModSat), i.Has(ptx.ModRelu)
	}
	return h
}

// value returns the number in the low 16 bits.
func (h half) value(v uint64) float64 {
	if h.brain {
		return float64(f32(v & 0xffff << 16)) //nolint:mnd // the upper half of single precision
	}
	x := fromF16(v)
	if h.ftz && math.Abs(x) < 0x1p-14 {
		return math.Copysign(0, x)
	}
	return x
}

// fromF16 returns a number of half precision.
func fromF16(v uint64) float64 {
	if exponent := v & 0x7c00; exponent != 0 && exponent != 0x7c00 {
		return math.Float64frombits(v&0x8000<<48 | (v&0x7fff+biasF16)<<42) //nolint:mnd // the sign; the fraction
	}
	return specialF16(v)
}

// biasF16 is the difference of the biases of double and half precision, where half precision has its exponent.
const biasF16 = (1023 - 15) << 10

// specialF16 returns a number of half precision that is no normal one.
func specialF16(v uint64) float64 {
	x := float64(v&0x3ff) * 0x1p-24
	if v&0x7c00 != 0 {
		if x != 0 {
			return math.NaN()
		}
		x = math.Inf(1)
	}
	if v&0x8000 != 0 {
		return -x
	}
	return x
}

// pack rounds a number, or one that was rounded to odd, to the nearest of the format.
func (h half) pack(x float64) uint64 { return h.packMode(x, ptx.ModRn) }

func (h half) packMode(x float64, mode ptx.Modifier) uint64 {
	if h.sat {
		if x = math.Max(0, math.Min(x, 1)); math.IsNaN(x) || x == 0 {
			x = 0
		}
	}
	if h.relu && x <= 0 { // NaN stays
		x = 0
	}
	switch {
	case math.IsNaN(x):
		return h.canonical
	case h.brain:
		return uint64(math.Float32bits(float32(formatBF16.round(x, mode)))) >> 16 //nolint:mnd // the upper half
	}
	x = formatF16.round(x, mode)
	if h.ftz && math.Abs(x) < 0x1p-14 {
		x = math.Copysign(0, x)
	}
	return toF16(x)
}

// toF16 returns the bits of a number that half precision holds.
func toF16(x float64) uint64 {
	word := math.Float64bits(x)
	sign := word >> 48 & 0x8000
	switch x = math.Abs(x); {
	case math.IsInf(x, 0):
		return sign | 0x7c00
	case x < 0x1p-14:
		return sign | uint64(x*0x1p24)
	}
	return sign | (word&^(1<<63)>>42 - biasF16) //nolint:mnd // the fraction
}

// each1 applies a function to a number or to both of a pair.
func (h half) each1(fn func1) func1 {
	if !h.pair {
		return func(a uint64) uint64 { return fn(a & 0xffff) }
	}
	return func(a uint64) uint64 { return fn(a&0xffff) | fn(a>>16&0xffff)<<16 }
}

func (h half) each2(fn func2) func2 {
	if !h.pair {
		return func(a, b uint64) uint64 { return fn(a&0xffff, b&0xffff) }
	}
	return func(a, b uint64) uint64 { return fn(a&0xffff, b&0xffff) | fn(a>>16&0xffff, b>>16&0xffff)<<16 }
}

func (h half) each3(fn func3) func3 {
	if !h.pair {
		return func(a, b, c uint64) uint64 { return fn(a&0xffff, b&0xffff, c&0xffff) }
	}
	return func(a, b, c uint64) uint64 {
		return fn(a&0xffff, b&0xffff, c&0xffff) | fn(a>>16&0xffff, b>>16&0xffff, c>>16&0xffff)<<16
	}
}

// halfFunction returns the function of an instruction on f16, bf16 or pairs of them.
func halfFunction(i *ptx.Instruction) (func1, func2, func3) {
	h := halfOf(i.Type(0), i)
	switch i.Op {
	case ptx.OpAdd:
		return nil, h.each2(func(a, b uint64) uint64 { return h.pack(odd(h.value(a), h.value(b))) }), nil
	case ptx.OpSub:
		return nil, h.each2(func(a, b uint64) uint64 { return h.pack(odd(h.value(a), -h.value(b))) }), nil
	case ptx.OpMul:
		return nil, h.each2(func(a, b uint64) uint64 { return h.pack(h.value(a) * h.value(b)) }), nil
	case ptx.OpFma:
		return nil, nil, h.each3(func(a, b, c uint64) uint64 { return h.pack(odd(h.value(a)*h.value(b), h.value(c))) })
	case ptx.OpMin, ptx.OpMax:
		return nil, h.extreme(i), nil
	case ptx.OpAbs:
		return h.onBits(func(a uint64) uint64 { return a &^ 0x8000 }), nil, nil
	case ptx.OpNeg:
		return h.onBits(func(a uint64) uint64 { return a ^ 0x8000 }), nil, nil
	}
	fn := approximation(i.Op)
	if fn == nil {
		return nil, nil, nil
	}
	return h.each1(func(a uint64) uint64 { return h.pack(fn(h.value(a))) }), nil, nil
}

func (h half) extreme(i *ptx.Instruction) func2 {
	spread, pick := i.Has(ptx.ModNaN), math.Min
	if i.Op == ptx.OpMax {
		pick = math.Max
	}
	return h.each2(func(a, b uint64) uint64 { return h.pack(extremeOf(pick, h.value(a), h.value(b), spread)) })
}

func (h half) onBits(change func1) func1 {
	return h.each1(func(a uint64) uint64 {
		x := h.value(a)
		switch {
		case math.IsNaN(x):
			return h.canonical
		case h.ftz && x == 0:
			a &= 0x8000
		}
		return change(a)
	})
}
