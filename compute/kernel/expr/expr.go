package expr

import (
	"fmt"
	"math"
	"strconv"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

// Expr is an expression. The zero value is wrong: see Err. It has a method for each operation, so that computations read as
// arithmetic.
type Expr struct{ *Node }

// Node is an operation of an expression, for those who make kernels of it. It does not change.
type Node struct {
	Op   Op
	Type tensor.Type // 0 of a Number that has not met another operand
	Args []Expr
	Bits uint64 // of a constant: as the elements of its type are, float16 and bfloat16 as float32
	At   int    // of an input or index: its number

	number float64 // of a constant without a type
	depth  int     // reductions inside each other, up to here
	row    bool    // one value for each row
	err    error
}

// Err is the first mistake of the expression, or nil: *TypeError, ErrNoExpr.
func (e Expr) Err() error {
	if e.Node == nil || e.Op == 0 { // no function of this package has made it
		return ErrNoExpr
	}
	return e.err
}

// Depth is how many reductions must be done, one after the other, before the value can be computed.
func (e Expr) Depth() int {
	if e.Node == nil {
		return 0
	}
	return e.depth
}

// Row reports whether there is one value for each row: of reductions and constants, not of elements.
func (e Expr) Row() bool { return e.Node != nil && e.row }

// Input is the element of the kernel's input tensor with that number.
func Input(number int, of tensor.Type) Expr {
	n := &Node{Op: OpInput, Type: of, At: number}
	switch {
	case !of.Valid():
		n.err = &TypeError{Op: OpInput, Types: []tensor.Type{of}}
	case number < 0 || number >= MaxInputs:
		n.err = fmt.Errorf("%w: number %d", ErrInputs, number)
	}
	return Expr{n}
}

// MaxInputs is how many inputs a kernel may have: their strides are parameters of the kernel.
const MaxInputs = 16

// Number returns a constant that takes the type of the other operand.
func Number(x float64) Expr { return Expr{&Node{Op: OpConst, number: x, row: true}} }

// Const is a constant of a type.
func Const[T tensor.Element](x T) Expr {
	n := &Node{Op: OpConst, Type: tensor.TypeOf[T](), row: true}
	switch x := any(x).(type) {
	case bool:
		if x {
			n.Bits = 1
		}
	case int64:
		n.Bits = uint64(x) //nolint:gosec // the same bits
	case float64:
		n.Bits = math.Float64bits(x)
	default:
		n.Bits = smallBits(x)
	}
	return Expr{n}
}

// Index is the element's index in a dimension: of the last one for -1, and so on. Its type is int64.
func Index(dim int) Expr {
	n := &Node{Op: OpIndex, Type: tensor.Int64, At: dim}
	if dim >= 0 {
		n.err = fmt.Errorf("%w: dimension %d: count from the end, -1 is the last one", ErrIndex, dim)
	}
	return Expr{n}
}

// Count is the number of elements that a reduction has for each row, as a float32 or float64.
func Count(of tensor.Type) Expr {
	n := &Node{Op: OpCount, Type: of, row: true}
	if of != tensor.Float32 && of != tensor.Float64 && of != tensor.Int64 {
		n.err = &TypeError{Op: OpCount, Types: []tensor.Type{of}}
	}
	return Expr{n}
}

// typed gives a constant without a type one.
func (e Expr) typed(of tensor.Type) Expr {
	if e.Node == nil || e.Type != 0 || e.Op != OpConst {
		return e
	}
	return Expr{&Node{Op: OpConst, Type: of, Bits: bitsOf(of, e.number), row: true}}
}

// rounded is a constant without a type as a number of a type, the nearest one: one of 16 bits is rounded to that.
func (e Expr) rounded(to tensor.Type) Expr {
	number := nearest(to, e.number)
	switch to { //nolint:exhaustive // the others have float32 or all numbers
	case tensor.Float16:
		number = float64(half.NewFloat16(float32(number)).Float32())
	case tensor.BFloat16:
		number = float64(half.NewBFloat16(float32(number)).Float32())
	}
	return Number(number).typed(to)
}

// nearest clamps a number to the bounds of a type of integers; NaN is 0. int64 has the bounds of its conversion.
func nearest(to tensor.Type, x float64) float64 {
	var low, high float64
	switch to { //nolint:exhaustive // the others have no bounds of their own
	case tensor.Uint8:
		high = math.MaxUint8
	case tensor.Int8:
		low, high = math.MinInt8, math.MaxInt8
	case tensor.Int16:
		low, high = math.MinInt16, math.MaxInt16
	case tensor.Int32:
		low, high = math.MinInt32, math.MaxInt32
	default:
		return x
	}
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, low), high)
}

// Typed is the expression, with the type float32 if it is a Number.
func (e Expr) Typed() Expr { return e.typed(tensor.Float32) }

// made is an operation whose operands have their types.
func made(op Op, of tensor.Type, args ...Expr) Expr {
	n := &Node{Op: op, Type: of, Args: args, row: true}
	for _, a := range args {
		if err := a.Err(); err != nil {
			return Expr{&Node{Op: op, Type: of, err: err}}
		}
		n.depth = max(n.depth, a.depth)
		n.row = n.row && a.row
	}
	if op.Reduces() {
		n.depth++
		n.row = true
	}
	return Expr{n}
}

// wrong is an expression of types that have no such operation.
func wrong(op Op, types ...tensor.Type) Expr {
	return Expr{&Node{Op: op, err: &TypeError{op, types}}}
}

// MaxText bounds String: a part of an expression is written wherever it is used, and so the text can double with each
// operation.
const MaxText = 4 << 10

// String is the expression as a text that has everything; of one that is longer than MaxText it has the begin, and ends with
// three dots.
func (e Expr) String() string {
	text := e.append(nil)
	if len(text) > MaxText {
		text = append(text[:MaxText-len(dots)], dots...)
	}
	return string(text)
}

const dots = "..."

// append adds the text, or some more than MaxText of it.
func (e Expr) append(b []byte) []byte {
	if err := e.Err(); err != nil {
		return fmt.Appendf(b, "(%v)", err)
	}
	switch {
	case e.Op == OpInput:
		return append(strconv.AppendInt(append(append(b, e.Type.String()...), '['), int64(e.At), 10), ']')
	case e.Op == OpIndex:
		return append(strconv.AppendInt(append(b, "index("...), int64(e.At), 10), ')')
	case e.Op == OpConst && e.Type == 0:
		return fmt.Append(b, e.number)
	case e.Op == OpConst:
		return strconv.AppendUint(append(append(b, e.Type.String()...), ":0x"...), e.Bits, 16)
	case e.Op == OpCast || e.Op == OpCount:
		b = append(b, e.Type.String()...)
	default:
		b = append(b, e.Op.String()...)
	}
	b = append(b, '(')
	for i, a := range e.Args {
		if len(b) > MaxText {
			return b
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = a.append(b)
	}
	return append(b, ')')
}
