package plan

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/elementary"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// reduction makes row values of elements. Its state is one value, or two: value and index, or maximum and sum.
type reduction struct {
	op      expr.Op
	of      *expr.Node
	kind    tensor.Type // of the elements
	results []*expr.Node
	depth   int
}

// state is the result of a reduction so far.
type state [2]code.Value

// pair reports whether the state has two values.
func (r *reduction) pair() bool {
	return r.op == expr.OpArgMax || r.op == expr.OpArgMin || r.op == expr.OpRunningMax
}

// size is the number of values of the state.
func (r *reduction) size() int {
	if r.pair() {
		return 2
	}
	return 1
}

// class returns the class of a value of the state. An index has 64 bits.
func (r *reduction) class(at int) code.Class {
	if at == 1 && r.op != expr.OpRunningMax {
		return code.B64
	}
	return classOf(r.kind)
}

// identity is the state before the first element.
func (r *reduction) identity() state {
	switch r.op { //nolint:exhaustive // reductions
	case expr.OpSum:
		return state{constant(r.kind, 0)}
	case expr.OpProd:
		return state{constant(r.kind, 1)}
	case expr.OpMin:
		return state{limit(r.kind, false)}
	case expr.OpArgMin:
		return state{limit(r.kind, false), code.U64(math.MaxInt64)}
	case expr.OpArgMax:
		return state{limit(r.kind, true), code.U64(math.MaxInt64)}
	case expr.OpRunningMax:
		return state{limit(r.kind, true), code.F32(0)}
	}
	return state{limit(r.kind, true)}
}

// constant is a small number of a type.
func constant(t tensor.Type, x int64) code.Value {
	switch familyOf(t) {
	case int64s:
		return code.U64(uint64(x)) //nolint:gosec // the same bits
	case float32s:
		return code.F32(float32(x))
	case float64s:
		return code.F64(float64(x))
	case int32s, pred:
	}
	return code.U32(uint32(x)) //nolint:gosec // the same bits
}

// limit is the lowest or the highest number of a type.
func limit(t tensor.Type, lowest bool) code.Value {
	low, high := int64(math.MinInt32), int64(math.MaxInt32)
	sign := 1
	if lowest {
		sign = -1
	}
	switch t {
	case tensor.Float16, tensor.BFloat16, tensor.Float32:
		return code.F32(float32(math.Inf(sign)))
	case tensor.Float64:
		return code.F64(math.Inf(sign))
	case tensor.Int64:
		low, high = math.MinInt64, math.MaxInt64
	case tensor.Uint8, tensor.Bool:
		low, high = 0, math.MaxUint8
	case tensor.Int8:
		low, high = math.MinInt8, math.MaxInt8
	case tensor.Int16:
		low, high = math.MinInt16, math.MaxInt16
	case tensor.Int32:
	}
	if lowest {
		return constant(t, low)
	}
	return constant(t, high)
}

// one is the state of an element.
func (r *reduction) one(v, index code.Value) state {
	switch r.op { //nolint:exhaustive // pairs
	case expr.OpArgMax, expr.OpArgMin:
		return state{v, index}
	case expr.OpRunningMax:
		return state{v, code.F32(1)}
	}
	return state{v}
}

// absorb adds neighbouring elements to a state.
func (r *reduction) absorb(e *element, s state, all []state) state {
	switch r.op { //nolint:exhaustive // those that do not combine all elements
	case expr.OpRunningMax:
		return r.absorbRunning(e, s, all)
	case expr.OpSample:
		return r.combine(e, s, all[0])
	}
	for len(all) > 1 {
		next := make([]state, 0, (len(all)+1)/2)
		for i := 0; i+1 < len(all); i += 2 {
			next = append(next, r.combine(e, all[i], all[i+1]))
		}
		if len(all)%2 == 1 {
			next = append(next, all[len(all)-1])
		}
		all = next
	}
	return r.combine(e, s, all[0])
}

// combine is the state of two parts of a row. It does not matter which one comes first.
func (r *reduction) combine(e *element, a, b state) state {
	switch r.op { //nolint:exhaustive // reductions
	case expr.OpSum:
		return state{e.operation(expr.OpAdd, r.kind, [3]code.Value{a[0], b[0]})}
	case expr.OpProd:
		return state{e.operation(expr.OpMul, r.kind, [3]code.Value{a[0], b[0]})}
	case expr.OpMax:
		return state{e.extreme(r.kind, true, a[0], b[0])}
	case expr.OpMin:
		return state{e.extreme(r.kind, false, a[0], b[0])}
	case expr.OpRunningMax:
		return r.absorbRunning(e, a, []state{b})
	case expr.OpSample: // a thread without elements has the lowest number, and so the other one is taken
		if familyOf(r.kind) == float64s {
			return state{e.Op2(code.MaxF64, a[0], b[0])}
		}
		return state{e.Op2(code.MaxF32, a[0], b[0])}
	}
	return r.combineArg(e, a, b)
}

// combineArg takes the better one of two elements: NaN before all, then the greater or lesser one, then the first one.
func (r *reduction) combineArg(e *element, a, b state) state {
	op := expr.OpGt
	if r.op == expr.OpArgMin {
		op = expr.OpLt
	}
	better := e.operation(op, r.kind, [3]code.Value{b[0], a[0]})
	equal := e.operation(expr.OpEq, r.kind, [3]code.Value{b[0], a[0]})
	if r.kind.Kind() == tensor.Floating {
		nan := func(v code.Value) code.Value { return e.operation(expr.OpIsNaN, r.kind, [3]code.Value{v}) }
		nanA, nanB := nan(a[0]), nan(b[0])
		better = e.Op2(code.OrPred, better, e.Op2(code.AndPred, nanB, e.Op1(code.NotPred, nanA)))
		equal = e.Op2(code.OrPred, equal, e.Op2(code.AndPred, nanB, nanA))
	}
	before := e.Op2(code.LtS64, b[1], a[1])
	take := e.Op2(code.OrPred, better, e.Op2(code.AndPred, equal, before))
	return state{e.pick(r.kind, take, b[0], a[0]), e.Op3(code.Select64, b[1], a[1], take)}
}

// absorbRunning moves all sums to the common maximum.
func (r *reduction) absorbRunning(e *element, s state, all []state) state {
	top := s[0]
	for _, x := range all {
		top = e.extreme(r.kind, true, top, x[0])
	}
	// Without this the distance of two infinities would be NaN.
	base := e.Op3(code.Select32, code.F32(0), top, e.Op2(code.EqF32, top, code.F32(float32(math.Inf(-1)))))
	scaled := func(x state) code.Value {
		return e.Op2(code.MulF32, x[1], elementary.BuildExpBelow(e, e.Op2(code.SubF32, x[0], base)))
	}
	sum := scaled(s)
	for _, x := range all {
		if x[1].Const && x[1].AsFloat32() == 1 {
			sum = e.Op2(code.AddF32, sum, elementary.BuildExpBelow(e, e.Op2(code.SubF32, x[0], base)))
			continue
		}
		sum = e.Op2(code.AddF32, sum, scaled(x))
	}
	return state{top, sum}
}

// result is the row value of a node.
func (r *reduction) result(n *expr.Node, s state) code.Value {
	switch n.Op { //nolint:exhaustive // the second value
	case expr.OpArgMax, expr.OpArgMin, expr.OpRunningSum:
		return s[r.size()-1] // a sum that is found apart from its maximum is alone
	}
	return s[0]
}
