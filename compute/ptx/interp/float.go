package interp

import (
	"math"

	"github.com/go-vram/vram/compute/ptx"
)

// number is arithmetic on f32 or f64: numbers travel as float64, which holds both.
type number struct {
	double   bool
	ftz, sat bool
	mode     ptx.Modifier // of rounding
}

func numberOf(i *ptx.Instruction) number {
	mode := i.Mod(ptx.KindRound)
	if mode == ptx.NoModifier {
		mode = ptx.ModRn
	}
	return number{i.Type(0) == ptx.F64, i.Has(ptx.ModFtz), i.Has(ptx.ModSat), mode}
}

// value reads a number.
func (r number) value(v uint64) float64 {
	if r.double {
		x := math.Float64frombits(v)
		if r.ftz && math.Abs(x) < 0x1p-1022 {
			x = math.Copysign(0, x)
		}
		return x
	}
	x := f32(v)
	if r.ftz {
		x = flush(x)
	}
	return float64(x)
}

// flush makes a subnormal number zero.
func flush(x float32) float32 {
	if x > -0x1p-126 && x < 0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// pack writes a result, which is rounded.
func (r number) pack(x float64) uint64 {
	if r.sat {
		if x = math.Max(0, math.Min(x, 1)); x != x || x == 0 { //nolint:gocritic // NaN
			x = 0
		}
	}
	if r.double {
		if r.ftz && math.Abs(x) < 0x1p-1022 {
			x = math.Copysign(0, x)
		}
		return math.Float64bits(x)
	}
	y := float32(x)
	if r.ftz {
		y = flush(y)
	}
	return bits32(y)
}

// compute returns the result of an operation, rounded as the instruction says.
func (r number) compute(op operation, a, b, c float64) uint64 {
	switch {
	case r.mode != ptx.ModRn:
		return r.pack(directed(op, r.mode, r.double, a, b, c))
	case r.double:
		return r.pack(nearestOf(op, a, b, c))
	case op == opFma:
		return r.pack(float64(fma32(float32(a), float32(b), float32(c))))
	}
	return r.pack(float64(float32(nearestOf(op, a, b, c)))) // rounding twice is right: double precision has more than twice the bits
}

// floatFunction returns the function of an instruction on f32 or f64.
func floatFunction(i *ptx.Instruction) (func1, func2, func3) {
	r := numberOf(i)
	switch i.Op {
	case ptx.OpAdd:
		return nil, func(a, b uint64) uint64 { return r.compute(opAdd, r.value(a), r.value(b), 0) }, nil
	case ptx.OpSub:
		return nil, func(a, b uint64) uint64 { return r.compute(opAdd, r.value(a), -r.value(b), 0) }, nil
	case ptx.OpMul:
		return nil, func(a, b uint64) uint64 { return r.compute(opMul, r.value(a), r.value(b), 0) }, nil
	case ptx.OpDiv:
		return nil, func(a, b uint64) uint64 { return r.compute(opDiv, r.value(a), r.value(b), 0) }, nil
	case ptx.OpFma, ptx.OpMad:
		return nil, nil, func(a, b, c uint64) uint64 { return r.compute(opFma, r.value(a), r.value(b), r.value(c)) }
	case ptx.OpSqrt:
		return func(a uint64) uint64 { return r.compute(opSqrt, r.value(a), 0, 0) }, nil, nil
	case ptx.OpRcp:
		return func(a uint64) uint64 { return r.compute(opDiv, 1, r.value(a), 0) }, nil, nil
	case ptx.OpMin, ptx.OpMax:
		return nil, r.extreme(i), nil
	case ptx.OpAbs:
		return r.onBits(func(a, sign uint64) uint64 { return a &^ sign }), nil, nil
	case ptx.OpNeg:
		return r.onBits(func(a, sign uint64) uint64 { return a ^ sign }), nil, nil
	case ptx.OpCopysign:
		sign := r.sign()
		return nil, func(a, b uint64) uint64 { return b&^sign | a&sign }, nil
	default:
		return r.approximate(i.Op), nil, nil
	}
}

// sign returns the bit of the sign.
func (r number) sign() uint64 {
	if r.double {
		return 1 << 63
	}
	return 1 << 31
}

// onBits changes the sign, which keeps the bits of NaN in double precision.
func (r number) onBits(change func(a, sign uint64) uint64) func1 {
	sign := r.sign()
	return func(a uint64) uint64 {
		if !r.double {
			if x := f32(a); x != x { //nolint:gocritic // NaN
				return nanF32
			} else if r.ftz {
				a = uint64(math.Float32bits(flush(x)))
			}
		}
		return change(a, sign)
	}
}

// extreme is min or max: of a number and NaN it is the number, unless .NaN says otherwise; -0 is below +0.
func (r number) extreme(i *ptx.Instruction) func2 {
	spread, xorsign := i.Has(ptx.ModNaN), i.Has(ptx.ModXorsign)
	pick := math.Min
	if i.Op == ptx.OpMax {
		pick = math.Max
	}
	return func(a, b uint64) uint64 {
		x, y := r.value(a), r.value(b)
		negative := math.Signbit(x) != math.Signbit(y)
		if xorsign {
			x, y = math.Abs(x), math.Abs(y)
		}
		z := extremeOf(pick, x, y, spread)
		if xorsign && negative && z == z { //nolint:gocritic // not NaN
			z = -z
		}
		return r.pack(z)
	}
}

func extremeOf(pick func(x, y float64) float64, x, y float64, spread bool) float64 {
	switch {
	case spread || !math.IsNaN(x) && !math.IsNaN(y):
		return spreadNaN(pick, x, y)
	case math.IsNaN(x):
		return y
	}
	return x
}

// spreadNaN is pick, and NaN where one operand is: Go's Min prefers an infinity.
func spreadNaN(pick func(x, y float64) float64, x, y float64) float64 {
	if math.IsNaN(x) || math.IsNaN(y) {
		return math.NaN()
	}
	return pick(x, y)
}

// approximate returns a function whose result the hardware approximates: here it is the nearest number, which is within
// the error that PTX documents.
func (r number) approximate(op ptx.Opcode) func1 {
	fn := approximation(op)
	if fn == nil {
		return nil
	}
	return func(a uint64) uint64 { return r.pack(fn(r.value(a))) }
}

func approximation(op ptx.Opcode) func(float64) float64 {
	switch op {
	case ptx.OpRsqrt:
		return func(x float64) float64 { return 1 / math.Sqrt(x) }
	case ptx.OpSin:
		return math.Sin
	case ptx.OpCos:
		return math.Cos
	case ptx.OpLg2:
		return math.Log2
	case ptx.OpEx2:
		return math.Exp2
	case ptx.OpTanh:
		return math.Tanh
	default:
		return nil
	}
}
