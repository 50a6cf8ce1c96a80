package expr

import "fmt"

// Op is the operation of a Node.
type Op uint8

// The operations.
const (
	OpInput Op = iota + 1
	OpConst
	OpIndex
	OpCount
	OpCast
	OpBitcast

	OpNeg
	OpAbs
	OpNot
	OpFloor
	OpCeil
	OpRound
	OpTrunc
	OpSqrt
	OpRsqrt
	OpExp
	OpExpBelow // of a number that is not positive
	OpExp2
	OpExpm1
	OpLog
	OpLog2
	OpLog1p
	OpSin
	OpCos
	OpTanh
	OpErf
	OpIsNaN

	OpAdd
	OpSub
	OpMul
	OpDiv
	OpMinimum
	OpMaximum
	OpPow
	OpAnd
	OpOr
	OpXor
	OpEq
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe

	OpSelect
	OpFma

	OpSum
	OpProd
	OpMax
	OpMin
	OpArgMax
	OpArgMin
	OpSample     // an element of the row, which one depends on the schedule: NaN only where all are
	OpRunningMax // of the pair that LogSumExp keeps: the maximum
	OpRunningSum // and the sum of the exponentials of the distances from it
	opCount
)

//nolint:gochecknoglobals // constant table of names
var opNames = [opCount]string{
	OpInput: "input", OpConst: "const", OpIndex: "index", OpCount: "count", OpCast: "cast", OpBitcast: "bitcast",
	OpNeg: "neg", OpAbs: "abs", OpNot: "not", OpFloor: "floor", OpCeil: "ceil", OpRound: "round", OpTrunc: "trunc",
	OpSqrt: "sqrt", OpRsqrt: "rsqrt", OpExp: "exp", OpExpBelow: "expbelow", OpExp2: "exp2", OpExpm1: "expm1", OpLog: "log", OpLog2: "log2", OpLog1p: "log1p",
	OpSin: "sin", OpCos: "cos", OpTanh: "tanh", OpErf: "erf", OpIsNaN: "isnan",
	OpAdd: "add", OpSub: "sub", OpMul: "mul", OpDiv: "div", OpMinimum: "minimum", OpMaximum: "maximum", OpPow: "pow",
	OpAnd: "and", OpOr: "or", OpXor: "xor", OpEq: "eq", OpNe: "ne", OpLt: "lt", OpLe: "le", OpGt: "gt", OpGe: "ge",
	OpSelect: "select", OpFma: "fma",
	OpSum: "sum", OpProd: "prod", OpMax: "max", OpMin: "min", OpArgMax: "argmax", OpArgMin: "argmin", OpSample: "sample",
	OpRunningMax: "runningmax", OpRunningSum: "runningsum",
}

// String is the operation's name in lower case.
func (o Op) String() string {
	if o == 0 || o >= opCount {
		return fmt.Sprintf("operation %d", uint8(o))
	}
	return opNames[o]
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Reduces reports whether the operation makes one value of a row.
func (o Op) Reduces() bool { return o >= OpSum && o < opCount }
