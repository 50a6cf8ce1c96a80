package ops

import (
	"math"

	"github.com/go-vram/vram/compute/tensor"
)

// Arithmetic are operations on each element.
type Arithmetic struct{ set *set }

// Comparisons are operations that make bool of each pair of elements, and the choice by one.
type Comparisons struct{ set *set }

// Add is x+y; of bools their disjunction.
func (o Arithmetic) Add(at tensor.Context, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opAdd}, x, y)
}

// AddInto writes Add to a tensor, to whose shape the operands are broadcast.
func (o Arithmetic) AddInto(at tensor.Context, out, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opAdd}, out, x, y)
}

// Sub is x-y.
func (o Arithmetic) Sub(at tensor.Context, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opSub}, x, y)
}

// SubInto writes Sub to a tensor, to whose shape the operands are broadcast.
func (o Arithmetic) SubInto(at tensor.Context, out, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opSub}, out, x, y)
}

// Mul is x*y; of bools their conjunction.
func (o Arithmetic) Mul(at tensor.Context, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opMul}, x, y)
}

// MulInto writes Mul to a tensor, to whose shape the operands are broadcast.
func (o Arithmetic) MulInto(at tensor.Context, out, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opMul}, out, x, y)
}

// Div is x/y, of floating-point numbers: integers are converted to float32.
func (o Arithmetic) Div(at tensor.Context, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opDiv}, x, y)
}

// DivInto writes Div to a tensor, to whose shape the operands are broadcast.
func (o Arithmetic) DivInto(at tensor.Context, out, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opDiv}, out, x, y)
}

// Neg is -x. Errors: *expr.TypeError for bools.
func (o Arithmetic) Neg(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opNeg, x)
}

// NegInto writes Neg to a tensor.
func (o Arithmetic) NegInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opNeg}, out, x)
}

// Abs returns the absolute value. Errors: *expr.TypeError for bools.
func (o Arithmetic) Abs(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opAbs, x)
}

// AbsInto writes Abs to a tensor.
func (o Arithmetic) AbsInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opAbs}, out, x)
}

// Sqrt returns the square root.
func (o Arithmetic) Sqrt(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opSqrt, x)
}

// SqrtInto writes Sqrt to a tensor.
func (o Arithmetic) SqrtInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opSqrt}, out, x)
}

// Rsqrt returns 1/sqrt(x).
func (o Arithmetic) Rsqrt(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opRsqrt, x)
}

// RsqrtInto writes Rsqrt to a tensor.
func (o Arithmetic) RsqrtInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opRsqrt}, out, x)
}

// Exp is e to the power of x.
func (o Arithmetic) Exp(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opExp, x)
}

// ExpInto writes Exp to a tensor.
func (o Arithmetic) ExpInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opExp}, out, x)
}

// Log returns the natural logarithm.
func (o Arithmetic) Log(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opLog, x)
}

// LogInto writes Log to a tensor.
func (o Arithmetic) LogInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opLog}, out, x)
}

// Clamp is x, or low where x is less, or high where x is greater. -Inf and +Inf are no bounds; a bound with a fraction makes
// float32 of integers, and NaN makes NaN. Errors: ErrNumber for a bound that the integer type does not have.
func (o Arithmetic) Clamp(at tensor.Context, x *tensor.Tensor, low, high float64) (*tensor.Tensor, error) {
	k, err := clamp(opClamp, x, low, high)
	if err != nil {
		return nil, err
	}
	return o.set.made(at, k, x.Shape(), x)
}

// ClampInto writes Clamp to a tensor.
func (o Arithmetic) ClampInto(at tensor.Context, out, x *tensor.Tensor, low, high float64) error {
	k, err := clamp(opClamp, x, low, high)
	if err != nil {
		return err
	}
	return o.set.into(at, k, out, x)
}

// clamp returns the key of a clamp, or of its gradient.
func clamp(op operation, x *tensor.Tensor, low, high float64) (key, error) {
	for i, bound := range [...]float64{low, high} {
		if !math.IsInf(bound, 0) && !math.IsNaN(bound) && bound == math.Trunc(bound) && !holds(x.Type(), bound) {
			return key{}, failed(op, badNumber([...]string{"low", "high"}[i], bound), nil, x)
		}
	}
	return key{op: op, numbers: [4]uint64{math.Float64bits(low), math.Float64bits(high)}}, nil
}

// Eq is x == y.
func (o Comparisons) Eq(at tensor.Context, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opEq}, x, y)
}

// EqInto writes Eq to a tensor, to whose shape the operands are broadcast.
func (o Comparisons) EqInto(at tensor.Context, out, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opEq}, out, x, y)
}

// Ne is x != y.
func (o Comparisons) Ne(at tensor.Context, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opNe}, x, y)
}

// NeInto writes Ne to a tensor, to whose shape the operands are broadcast.
func (o Comparisons) NeInto(at tensor.Context, out, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opNe}, out, x, y)
}

// Lt is x < y.
func (o Comparisons) Lt(at tensor.Context, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opLt}, x, y)
}

// LtInto writes Lt to a tensor, to whose shape the operands are broadcast.
func (o Comparisons) LtInto(at tensor.Context, out, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opLt}, out, x, y)
}

// Le is x <= y.
func (o Comparisons) Le(at tensor.Context, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opLe}, x, y)
}

// LeInto writes Le to a tensor, to whose shape the operands are broadcast.
func (o Comparisons) LeInto(at tensor.Context, out, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opLe}, out, x, y)
}

// Gt is x > y.
func (o Comparisons) Gt(at tensor.Context, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opGt}, x, y)
}

// GtInto writes Gt to a tensor, to whose shape the operands are broadcast.
func (o Comparisons) GtInto(at tensor.Context, out, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opGt}, out, x, y)
}

// Ge is x >= y.
func (o Comparisons) Ge(at tensor.Context, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opGe}, x, y)
}

// GeInto writes Ge to a tensor, to whose shape the operands are broadcast.
func (o Comparisons) GeInto(at tensor.Context, out, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opGe}, out, x, y)
}

// Where is x where the condition is true, and y where it is false. A number is true unless it is 0.
func (o Comparisons) Where(at tensor.Context, condition, x, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.broadcast(at, key{op: opWhere}, condition, x, y)
}

// WhereInto writes Where to a tensor.
func (o Comparisons) WhereInto(at tensor.Context, out, condition, x, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opWhere}, out, condition, x, y)
}
