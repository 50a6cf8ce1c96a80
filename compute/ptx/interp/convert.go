package interp

import (
	"math"
	"math/big"

	"github.com/go-vram/vram/compute/ptx"
)

// lowerConvert translates cvt.
func lowerConvert(c *lowering, i *ptx.Instruction) {
	to, from := i.Type(0), i.Type(1)
	d := c.out(&i.Operands[0])
	a := c.in(&i.Operands[1], from)
	width := to.Bits()
	if i.Operands[0].Kind == ptx.OperandRegister {
		width = i.Operands[0].Register.Type.Bits()
	}
	if to.Lanes() == 2 { //nolint:mnd // a pair of halves
		b := c.in(&i.Operands[2], from)
		one, read := halfOf(to, i), reader(from, i)
		one.sat, one.ftz = false, false
		mode := i.Mod(ptx.KindRound)
		c.to.compute = apply2(d, a, b, func(a, b uint64) uint64 { // a is the upper half
			return one.packMode(read(a), mode)<<16 | one.packMode(read(b), mode)
		})
		return
	}
	if fn := conversion(i, to, from, width); fn != nil {
		c.to.compute = apply1(d, a, fn)
	}
}

// conversion returns the function of cvt with one operand. An integer result is extended to width, the bits of its register.
func conversion(i *ptx.Instruction, to, from ptx.Type, width int) func1 {
	toFloat, fromFloat := to.Class() == ptx.Float, from.Class() == ptx.Float
	mode := i.Mod(ptx.KindRound)
	switch {
	case !toFloat && !fromFloat:
		return integerToInteger(integerOf(to), integerOf(from), i.Has(ptx.ModSat), width)
	case !toFloat:
		return floatToInteger(integerOf(to), from, reader(from, i), mode, width)
	case !fromFloat:
		return integerToFloat(writer(to, i), to, integerOf(from), mode)
	}
	return floatToFloat(i, to, from, mode)
}

func integerToInteger(to, from integer, sat bool, width int) func1 {
	wide := integer{width: max(width, to.width)}
	if sat {
		return func(a uint64) uint64 { return wide.pack(to.value(uint64(to.clamp(from.value(a), from.signed)))) } //nolint:gosec // in two's complement
	}
	narrow, ones := to, mask(wide.width)
	if from.width < to.width {
		if narrow = from; !to.signed {
			ones = mask(to.width)
		}
	}
	if !narrow.signed {
		return func(a uint64) uint64 { return a & mask(narrow.width) }
	}
	return func(a uint64) uint64 { return uint64(signExtend(a, narrow.width, true)) & ones } //nolint:gosec // in two's complement
}

// clamp cuts a number of 64 bits to the range of the type.
func (t integer) clamp(v int64, signed bool) int64 {
	least, most := t.bounds()
	if !t.signed {
		least, most = 0, int64(mask(t.width)) //nolint:gosec // in two's complement
	}
	switch {
	case !signed && v < 0: // more than the largest of 63 bits
		if t.signed || t.width < 64 { //nolint:mnd // a wider one holds it
			return most
		}
		return v
	case t.signed || t.width < 64: //nolint:mnd // a type of 64 bits holds all numbers that are not negative
		return min(max(v, least), most)
	}
	return max(v, 0)
}

// reader reads a floating-point number.
func reader(t ptx.Type, i *ptx.Instruction) func(uint64) float64 {
	ftz := i.Has(ptx.ModFtz)
	switch t {
	case ptx.F32:
		return number{ftz: ftz}.value
	case ptx.F64:
		return math.Float64frombits
	default:
		return halfOf(t, nil).value
	}
}

// writer rounds a number and writes it.
func writer(t ptx.Type, i *ptx.Instruction) func(x float64, mode ptx.Modifier) uint64 {
	ftz, sat := i.Has(ptx.ModFtz), i.Has(ptx.ModSat)
	switch t {
	case ptx.F32:
		r := number{ftz: ftz, sat: sat}
		return func(x float64, mode ptx.Modifier) uint64 {
			if mode == ptx.ModRn || mode == ptx.NoModifier {
				return r.pack(x) // Go's conversion rounds so
			}
			return r.pack(formatF32.round(x, mode))
		}
	case ptx.F64:
		r := number{double: true, sat: sat}
		return func(x float64, _ ptx.Modifier) uint64 { return r.pack(x) }
	case ptx.TF32:
		return func(x float64, _ ptx.Modifier) uint64 { return bits32(float32(formatTF32.round(x, ptx.ModRna))) }
	default:
		h := halfOf(t, i)
		h.ftz = false // of single precision
		return h.packMode
	}
}

// floatToInteger cuts to the range of the type. NaN is 0, but has the highest bit alone where one of the types has 64 bits.
func floatToInteger(to integer, from ptx.Type, read func(uint64) float64, mode ptx.Modifier, width int) func1 {
	wide := integer{width: max(width, to.width)}
	nan := uint64(0)
	if from == ptx.F64 || to.width == 64 {
		nan = 1 << (to.width - 1)
	}
	nan = wide.pack(to.value(nan))
	return func(a uint64) uint64 {
		x := read(a)
		if math.IsNaN(x) {
			return nan
		}
		return wide.pack(to.value(uint64(to.fromFloat(roundInteger(x, mode))))) //nolint:gosec // in two's complement
	}
}

// fromFloat cuts an integral number to the range of the type.
func (t integer) fromFloat(x float64) int64 {
	least, most := t.bounds()
	if !t.signed {
		switch limit := math.Ldexp(1, t.width); {
		case x <= 0:
			return 0
		case x >= limit:
			return int64(mask(t.width)) //nolint:gosec // in two's complement
		case x >= 0x1p63:
			return int64(uint64(x-0x1p63) | 1<<63) //nolint:gosec // in two's complement
		}
		return int64(x)
	}
	switch limit := math.Ldexp(1, t.width-1); {
	case x >= limit:
		return most
	case x <= -limit:
		return least
	}
	return int64(x)
}

func integerToFloat(write func(float64, ptx.Modifier) uint64, to ptx.Type, from integer, mode ptx.Modifier) func1 {
	double := to == ptx.F64
	return func(a uint64) uint64 {
		v := from.value(a)
		if v == int64(float64(v)) && (from.signed || v >= 0) && v > -1<<53 && v < 1<<53 {
			return write(float64(v), mode) // exact in double precision
		}
		n := new(big.Float).SetInt64(v)
		if !from.signed {
			n = new(big.Float).SetUint64(uint64(v)) //nolint:gosec // in two's complement
		}
		x, at := n.Float64()
		if double {
			return write(nudge(x, at, mode, true), mode)
		}
		return write(stick(x, float64(-at)), mode)
	}
}

// floatToFloat widens exactly, or rounds once.
func floatToFloat(i *ptx.Instruction, to, from ptx.Type, mode ptx.Modifier) func1 {
	read, write := reader(from, i), writer(to, i)
	if to == from && isIntegral(mode) {
		return func(a uint64) uint64 { return write(roundInteger(read(a), mode), ptx.ModRn) }
	}
	return func(a uint64) uint64 { return write(read(a), mode) }
}

// isIntegral reports whether a rounding is one to integers.
func isIntegral(mode ptx.Modifier) bool {
	return mode == ptx.ModRni || mode == ptx.ModRzi || mode == ptx.ModRmi || mode == ptx.ModRpi
}
