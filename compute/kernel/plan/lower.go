package plan

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/elementary"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor"
)

// element computes the nodes of one element.
type element struct {
	code.Machine
	known  map[*expr.Node]code.Value // of this element
	around *element                  // of the row; or nil
	leaf   func(n *expr.Node) code.Value
}

// value returns the value of a node, and computes it once.
func (e *element) value(n *expr.Node) code.Value {
	for at := e; at != nil; at = at.around {
		if v, ok := at.known[n]; ok {
			return v
		}
	}
	v := e.compute(n)
	e.known[n] = v
	return v
}

func (e *element) compute(n *expr.Node) code.Value {
	switch n.Op { //nolint:exhaustive // those without operands
	case expr.OpConst:
		switch classOf(n.Type) { //nolint:exhaustive // of values
		case code.Pred:
			return code.Bool(n.Bits != 0)
		case code.B64:
			return code.U64(n.Bits)
		}
		return code.U32(uint32(n.Bits)) //nolint:gosec // the low half
	case expr.OpInput, expr.OpIndex, expr.OpCount:
		return e.leaf(n)
	}
	var args [3]code.Value
	for i, a := range n.Args {
		args[i] = e.value(a.Node)
	}
	of := n.Args[0].Type
	if n.Op == expr.OpSelect {
		return e.pick(n.Type, args[0], args[1], args[2])
	}
	if n.Op == expr.OpCast {
		return e.cast(args[0], of, n.Type)
	}
	if n.Op == expr.OpBitcast {
		return args[0]
	}
	return e.narrow(n.Type, e.operation(n.Op, of, args))
}

// classOf returns the class of values of an element type. Floating-point types of 16 bits are computed in float32.
func classOf(t tensor.Type) code.Class {
	switch t {
	case tensor.Bool:
		return code.Pred
	case tensor.Int64, tensor.Float64:
		return code.B64
	case tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Float16, tensor.BFloat16, tensor.Float32:
	}
	return code.B32
}

// pick is a where the condition holds, else b.
func (e *element) pick(t tensor.Type, condition, a, b code.Value) code.Value {
	switch classOf(t) { //nolint:exhaustive // of values
	case code.Pred:
		return e.Op3(code.SelectPred, a, b, condition)
	case code.B64:
		return e.Op3(code.Select64, a, b, condition)
	}
	return e.Op3(code.Select32, a, b, condition)
}

// narrow wraps an integer that is shorter than its register.
func (e *element) narrow(t tensor.Type, v code.Value) code.Value {
	switch t { //nolint:exhaustive // short ones
	case tensor.Uint8:
		return e.Op2(code.And32, v, code.U32(255))
	case tensor.Int8:
		return e.Op2(code.ShrS32, e.Op2(code.Shl32, v, code.U32(24)), code.U32(24))
	case tensor.Int16:
		return e.Op2(code.ShrS32, e.Op2(code.Shl32, v, code.U32(16)), code.U32(16))
	}
	return v
}

// family is how the operations of a type are computed.
type family uint8

const (
	pred family = iota
	int32s
	int64s
	float32s
	float64s
)

func familyOf(t tensor.Type) family {
	switch t {
	case tensor.Bool:
		return pred
	case tensor.Int64:
		return int64s
	case tensor.Float16, tensor.BFloat16, tensor.Float32:
		return float32s
	case tensor.Float64:
		return float64s
	case tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32:
	}
	return int32s
}

// row is the operation of each family; absent where there is none.
type row [5]code.Op

const absent = code.Op(255)

//nolint:gochecknoglobals // constant table of operations
var rows = map[expr.Op]row{
	expr.OpNeg:   {absent, code.NegS32, code.NegS64, code.NegF32, code.NegF64},
	expr.OpAbs:   {absent, code.AbsS32, code.AbsS64, code.AbsF32, code.AbsF64},
	expr.OpNot:   {code.NotPred, code.Not32, code.Not64, absent, absent},
	expr.OpFloor: {absent, absent, absent, code.FloorF32, code.FloorF64},
	expr.OpCeil:  {absent, absent, absent, code.CeilF32, code.CeilF64},
	expr.OpRound: {absent, absent, absent, code.RoundF32, code.RoundF64},
	expr.OpTrunc: {absent, absent, absent, code.TruncF32, code.TruncF64},
	expr.OpSqrt:  {absent, absent, absent, code.SqrtF32, code.SqrtF64},
	expr.OpAdd:   {absent, code.AddS32, code.AddS64, code.AddF32, code.AddF64},
	expr.OpSub:   {absent, code.SubS32, code.SubS64, code.SubF32, code.SubF64},
	expr.OpMul:   {absent, code.MulS32, code.MulS64, code.MulF32, code.MulF64},
	expr.OpDiv:   {absent, absent, absent, code.DivF32, code.DivF64},
	expr.OpAnd:   {code.AndPred, code.And32, code.And64, absent, absent},
	expr.OpOr:    {code.OrPred, code.Or32, code.Or64, absent, absent},
	expr.OpXor:   {code.XorPred, code.Xor32, code.Xor64, absent, absent},
	expr.OpEq:    {absent, code.EqS32, code.EqS64, code.EqF32, code.EqF64},
	expr.OpNe:    {code.XorPred, code.NeS32, code.NeS64, code.NeF32, code.NeF64},
	expr.OpLt:    {absent, code.LtS32, code.LtS64, code.LtF32, code.LtF64},
	expr.OpLe:    {absent, code.LeS32, code.LeS64, code.LeF32, code.LeF64},
	expr.OpGt:    {absent, code.GtS32, code.GtS64, code.GtF32, code.GtF64},
	expr.OpGe:    {absent, code.GeS32, code.GeS64, code.GeF32, code.GeF64},
}

// operation computes an operation of the table, or a formula, of operands of a type.
func (e *element) operation(op expr.Op, of tensor.Type, args [3]code.Value) code.Value {
	f := familyOf(of)
	a, b := args[0], args[1]
	switch {
	case op == expr.OpFma && f == float32s:
		return e.Op3(code.FmaF32, a, b, args[2])
	case op == expr.OpFma:
		return e.Op3(code.FmaF64, a, b, args[2])
	case op == expr.OpMinimum || op == expr.OpMaximum:
		return e.extreme(of, op == expr.OpMaximum, a, b)
	case f == pred && op >= expr.OpEq && op <= expr.OpGe:
		return e.compareBools(op, a, b)
	}
	if r, ok := rows[op]; ok {
		if op <= expr.OpIsNaN {
			return e.Op1(r[f], a)
		}
		return e.Op2(r[f], a, b)
	}
	if f == float64s {
		if op == expr.OpIsNaN {
			return e.Op2(code.NanF64, a, a)
		}
		return e.Op2(code.DivF64, code.F64(1), e.Op1(code.SqrtF64, a)) // Rsqrt, which is all that expr lets through
	}
	switch op { //nolint:exhaustive // those of two operands
	case expr.OpIsNaN:
		return e.Op2(code.NanF32, a, a)
	case expr.OpPow:
		return elementary.BuildPow(e, a, b)
	}
	return functions[op](e, a)
}

//nolint:gochecknoglobals // constant table of operations
var functions = map[expr.Op]func(code.Machine, code.Value) code.Value{
	expr.OpRsqrt: elementary.BuildRsqrt, expr.OpExp: elementary.BuildExp, expr.OpExpBelow: elementary.BuildExpBelow,
	expr.OpExp2: elementary.BuildExp2, expr.OpExpm1: elementary.BuildExpm1, expr.OpLog: elementary.BuildLog, expr.OpLog2: elementary.BuildLog2,
	expr.OpLog1p: elementary.BuildLog1p, expr.OpSin: elementary.BuildSin, expr.OpCos: elementary.BuildCos, expr.OpTanh: elementary.BuildTanh,
	expr.OpErf: elementary.BuildErf,
}

// compareBools compares two bools: false is less than true.
func (e *element) compareBools(op expr.Op, a, b code.Value) code.Value {
	notA, notB := e.Op1(code.NotPred, a), e.Op1(code.NotPred, b)
	switch op { //nolint:exhaustive // comparisons
	case expr.OpEq:
		return e.Op2(code.XorPred, a, notB)
	case expr.OpNe:
		return e.Op2(code.XorPred, a, b)
	case expr.OpLt:
		return e.Op2(code.AndPred, notA, b)
	case expr.OpLe:
		return e.Op2(code.OrPred, notA, b)
	case expr.OpGt:
		return e.Op2(code.AndPred, a, notB)
	}
	return e.Op2(code.OrPred, a, notB)
}

// extreme is the greater or the lesser of two numbers, and NaN where one is.
func (e *element) extreme(of tensor.Type, greater bool, a, b code.Value) code.Value {
	choose := func(high, low code.Op) code.Op {
		if greater {
			return high
		}
		return low
	}
	switch familyOf(of) { //nolint:exhaustive // integers first
	case int32s:
		return e.Op2(choose(code.MaxS32, code.MinS32), a, b)
	case int64s:
		return e.Op2(choose(code.MaxS64, code.MinS64), a, b)
	case float64s:
		v := e.Op2(choose(code.MaxF64, code.MinF64), a, b)
		return e.Op3(code.Select64, code.F64(math.NaN()), v, e.Op2(code.NanF64, a, b))
	}
	if b.Const && b.AsFloat32() == b.AsFloat32() { // a NaN of a stays where it is compared as false
		return e.Op3(code.Select32, b, a, e.Op2(choose(code.LeF32, code.GeF32), a, b))
	}
	v := e.Op2(choose(code.MaxF32, code.MinF32), a, b)
	return e.Op3(code.Select32, code.U32(0x7fffffff), v, e.Op2(code.NanF32, a, b))
}
