package interp

import (
	"math"

	"github.com/go-vram/vram/compute/ptx"
)

// lowerTestp translates testp.
func lowerTestp(c *lowering, i *ptx.Instruction) {
	p, a := c.predOut(&i.Operands[0]), c.in(&i.Operands[1], i.Type(0))
	test := tester(i.Mod(ptx.KindTest), i.Type(0) == ptx.F64)
	c.to.compute = compared(p, none, a, a, comparing(func(a, _ uint64) bool { return test(a) }), nil, none, false)
}

// lowerSetp translates setp. It has one or two results; a pair of halves has a result for each.
func lowerSetp(c *lowering, i *ptx.Instruction) {
	t := i.Type(0)
	result := &i.Operands[0]
	var p int
	q := none
	if result.Kind == ptx.OperandPair {
		p, q = c.predOut(&result.Elements[0]), c.predOut(&result.Elements[1])
	} else {
		p = c.predOut(result)
	}
	a, b := c.in(&i.Operands[1], t), c.in(&i.Operands[2], t)
	combine, other, negated := combination(c, i)
	fn := comparisonOf(i.Mod(ptx.KindCompare), t, i.Has(ptx.ModFtz))
	if fn == nil {
		return
	}
	loop := comparing(fn)
	if t.Class() != ptx.Float {
		if hot := hotCompare(i.Mod(ptx.KindCompare), integerOf(t)); hot != nil {
			loop = hot
		}
	}
	c.to.compute = compared(p, q, a, b, loop, combine, other, negated)
	if t.Lanes() == 2 && q != none { //nolint:mnd // a pair: one predicate for each
		upper := func(a, b uint64) bool { return fn(a>>16, b>>16) } //nolint:mnd // the upper one
		first := compared(p, none, a, b, comparing(fn), combine, other, negated)
		second := compared(q, none, a, b, comparing(upper), combine, other, negated)
		c.to.compute = func(f *frame, m uint32) {
			first(f, m)
			second(f, m)
		}
	}
}

// combination returns the Boolean operation with a third predicate, if there is one.
func combination(c *lowering, i *ptx.Instruction) (combine func(a, b uint32) uint32, slot int, negated bool) {
	if len(i.Operands) < 4 { //nolint:mnd // the third predicate is the fourth operand
		return nil, none, false
	}
	slot, negated = c.predIn(&i.Operands[3])
	switch i.Mod(ptx.KindOperation) {
	case ptx.ModAnd:
		return func(a, b uint32) uint32 { return a & b }, slot, negated
	case ptx.ModOr:
		return func(a, b uint32) uint32 { return a | b }, slot, negated
	default:
		return func(a, b uint32) uint32 { return a ^ b }, slot, negated
	}
}

// comparisonOf returns a comparison of two values of a type.
func comparisonOf(op ptx.Modifier, t ptx.Type, ftz bool) func(a, b uint64) bool {
	switch {
	case t.Class() != ptx.Float:
		return integerComparison(op, integerOf(t))
	case t == ptx.F32 && !ftz:
		return floatComparison(op, func(v uint64) float64 { return float64(f32(v)) })
	case t == ptx.F32 || t == ptx.F64:
		return floatComparison(op, number{double: t == ptx.F64, ftz: ftz}.value)
	}
	h := halfOf(t, nil)
	h.ftz = ftz
	return floatComparison(op, h.value)
}

func integerComparison(op ptx.Modifier, t integer) func(a, b uint64) bool {
	switch op {
	case ptx.ModEq:
		return func(a, b uint64) bool { return (a^b)&mask(t.width) == 0 }
	case ptx.ModNe:
		return func(a, b uint64) bool { return (a^b)&mask(t.width) != 0 }
	case ptx.ModLt, ptx.ModLo:
		return t.less
	case ptx.ModLe, ptx.ModLs:
		return func(a, b uint64) bool { return !t.less(b, a) }
	case ptx.ModGt, ptx.ModHi:
		return func(a, b uint64) bool { return t.less(b, a) }
	case ptx.ModGe, ptx.ModHs:
		return func(a, b uint64) bool { return !t.less(a, b) }
	default:
		return nil
	}
}

// The outcomes of a comparison of two numbers.
const (
	isLess = 1 << iota
	isEqual
	isGreater
	isUnordered // a number is NaN
)

// floatOutcomes are the outcomes for which a comparison holds.
//
//nolint:gochecknoglobals // constant table of comparisons
var floatOutcomes = map[ptx.Modifier]int{
	ptx.ModEq: isEqual, ptx.ModNe: isLess | isGreater, ptx.ModEqu: isEqual | isUnordered, ptx.ModNeu: isLess | isGreater | isUnordered,
	ptx.ModLt: isLess, ptx.ModLe: isLess | isEqual, ptx.ModLtu: isLess | isUnordered, ptx.ModLeu: isLess | isEqual | isUnordered,
	ptx.ModGt: isGreater, ptx.ModGe: isGreater | isEqual, ptx.ModGtu: isGreater | isUnordered, ptx.ModGeu: isGreater | isEqual | isUnordered,
	ptx.ModNum: isLess | isEqual | isGreater, ptx.ModNan: isUnordered,
}

func floatComparison(op ptx.Modifier, value func(uint64) float64) func(a, b uint64) bool {
	holds := floatOutcomes[op]
	if holds == 0 {
		return nil
	}
	return func(a, b uint64) bool {
		x, y := value(a), value(b)
		switch {
		case x < y:
			return holds&isLess != 0
		case x > y:
			return holds&isGreater != 0
		case x == y:
			return holds&isEqual != 0
		}
		return holds&isUnordered != 0
	}
}

// tester returns the test of a modifier of testp.
func tester(test ptx.Modifier, double bool) func(uint64) bool {
	r := number{double: double}
	least := 0x1p-126
	if double {
		least = 0x1p-1022
	}
	return func(v uint64) bool {
		x := r.value(v)
		nan, infinite := math.IsNaN(x), math.IsInf(x, 0)
		small := x != 0 && math.Abs(x) < least // the manual counts zeros as normal numbers
		switch test {
		case ptx.ModFinite:
			return !nan && !infinite
		case ptx.ModInfinite:
			return infinite
		case ptx.ModNumber:
			return !nan
		case ptx.ModNotanumber:
			return nan
		case ptx.ModNormal:
			return !nan && !infinite && !small
		default: // subnormal
			return small
		}
	}
}
