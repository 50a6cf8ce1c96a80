package ops

import "github.com/go-vram/vram/compute/tensor"

type elementGradients struct{ set *set }

// AddBackward returns the gradients of the operands of Add. It uses only the types and shapes of x and y.
func (o elementGradients) AddBackward(at tensor.Context, grad, x, y *tensor.Tensor) (dx, dy *tensor.Tensor, err error) {
	return both(at, opAddBackward, x, y, func(dx, dy *tensor.Tensor) error { return o.AddBackwardInto(at, dx, dy, grad) })
}

// AddBackwardInto writes AddBackward to tensors.
func (o elementGradients) AddBackwardInto(at tensor.Context, dx, dy, grad *tensor.Tensor) error {
	return o.set.sumPair(at, opAddBackward, [2]term{
		{opSum, 1, step{dx, [4]*tensor.Tensor{grad}}},
		{opSum, 1, step{dy, [4]*tensor.Tensor{grad}}},
	}, grad)
}

// MulBackward returns the gradients of the operands of Mul: grad*y and grad*x.
func (o elementGradients) MulBackward(at tensor.Context, grad, x, y *tensor.Tensor) (dx, dy *tensor.Tensor, err error) {
	return both(at, opMulBackward, x, y, func(dx, dy *tensor.Tensor) error { return o.MulBackwardInto(at, dx, dy, grad, x, y) })
}

// MulBackwardInto writes MulBackward to tensors.
func (o elementGradients) MulBackwardInto(at tensor.Context, dx, dy, grad, x, y *tensor.Tensor) error {
	return o.set.sumPair(at, opMulBackward, [2]term{
		{opMulBackward, 2, step{dx, [4]*tensor.Tensor{grad, y}}},
		{opMulBackward, 2, step{dy, [4]*tensor.Tensor{grad, x}}},
	}, grad, x, y)
}

// SubBackward returns the gradients of the operands of Sub. It uses only the types and shapes of x and y.
func (o elementGradients) SubBackward(at tensor.Context, grad, x, y *tensor.Tensor) (dx, dy *tensor.Tensor, err error) {
	return both(at, opNegatedBackward, x, y, func(dx, dy *tensor.Tensor) error { return o.SubBackwardInto(at, dx, dy, grad) })
}

// SubBackwardInto writes SubBackward to tensors.
func (o elementGradients) SubBackwardInto(at tensor.Context, dx, dy, grad *tensor.Tensor) error {
	return o.set.sumPair(at, opNegatedBackward, [2]term{
		{opSum, 1, step{dx, [4]*tensor.Tensor{grad}}},
		{opNegatedBackward, 1, step{dy, [4]*tensor.Tensor{grad}}},
	}, grad)
}

// DivBackward returns the gradients of the operands of Div: grad/y and -grad*(x/y/y).
func (o elementGradients) DivBackward(at tensor.Context, grad, x, y *tensor.Tensor) (dx, dy *tensor.Tensor, err error) {
	return both(at, opDivBackward, x, y, func(dx, dy *tensor.Tensor) error { return o.DivBackwardInto(at, dx, dy, grad, x, y) })
}

// DivBackwardInto writes DivBackward to tensors.
func (o elementGradients) DivBackwardInto(at tensor.Context, dx, dy, grad, x, y *tensor.Tensor) error {
	return o.set.sumPair(at, opDivBackward, [2]term{
		{opDivBackward, 2, step{dx, [4]*tensor.Tensor{grad, y}}},
		{opDivisorBackward, 3, step{dy, [4]*tensor.Tensor{grad, x, y}}},
	}, grad, x, y)
}

// NegBackward returns the gradient of the operand of Neg. It uses only the type and shape of x.
func (o elementGradients) NegBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return create(at, like(opNegBackward, x), func(dx *tensor.Tensor) error { return o.NegBackwardInto(at, dx, grad) })
}

// NegBackwardInto writes NegBackward to a tensor.
func (o elementGradients) NegBackwardInto(at tensor.Context, dx, grad *tensor.Tensor) error {
	return o.set.into(at, key{op: opNegBackward}, dx, grad)
}

// AbsBackward returns the gradient of the operand x of Abs: grad times the sign of x. The sign of 0 and of NaN is 0.
func (o elementGradients) AbsBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opAbsBackward, grad, x)
}

// AbsBackwardInto writes AbsBackward to a tensor.
func (o elementGradients) AbsBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opAbsBackward}, dx, grad, x)
}

// SqrtBackward returns the gradient of the operand of Sqrt, of its result y: grad/(2*y), which is infinite where y is 0.
func (o elementGradients) SqrtBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opSqrtBackward, grad, y)
}

// SqrtBackwardInto writes SqrtBackward to a tensor.
func (o elementGradients) SqrtBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opSqrtBackward}, dx, grad, y)
}

// RsqrtBackward returns the gradient of the operand of Rsqrt, of its result y: -grad/2*y³.
func (o elementGradients) RsqrtBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opRsqrtBackward, grad, y)
}

// RsqrtBackwardInto writes RsqrtBackward to a tensor.
func (o elementGradients) RsqrtBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opRsqrtBackward}, dx, grad, y)
}

// ExpBackward returns the gradient of the operand of Exp, of its result y: grad*y.
func (o elementGradients) ExpBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opExpBackward, grad, y)
}

// ExpBackwardInto writes ExpBackward to a tensor.
func (o elementGradients) ExpBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opExpBackward}, dx, grad, y)
}

// LogBackward returns the gradient of the operand x of Log: grad/x.
func (o elementGradients) LogBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opLogBackward, grad, x)
}

// LogBackwardInto writes LogBackward to a tensor.
func (o elementGradients) LogBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opLogBackward}, dx, grad, x)
}

// ClampBackward returns the gradient of the operand x of Clamp with the same bounds: grad where x is within the bounds or equal
// to one, else 0, also where x or a bound is NaN. Errors: ErrNumber as Clamp.
func (o elementGradients) ClampBackward(at tensor.Context, grad, x *tensor.Tensor, low, high float64) (*tensor.Tensor, error) {
	return create(at, like(opClampBackward, x), func(dx *tensor.Tensor) error { return o.ClampBackwardInto(at, dx, grad, x, low, high) })
}

// ClampBackwardInto writes ClampBackward to a tensor.
func (o elementGradients) ClampBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor, low, high float64) error {
	k, err := clamp(opClampBackward, x, low, high)
	if err != nil {
		return err
	}
	return o.set.into(at, k, dx, grad, x)
}

// WhereBackward returns the gradients of the operands x and y of Where: grad where the condition selected the operand, else 0.
// It uses only the types and shapes of x and y.
func (o elementGradients) WhereBackward(at tensor.Context, grad, condition, x, y *tensor.Tensor) (dx, dy *tensor.Tensor, err error) {
	return both(at, opWhereBackward, x, y, func(dx, dy *tensor.Tensor) error { return o.WhereBackwardInto(at, dx, dy, grad, condition) })
}

// WhereBackwardInto writes WhereBackward to tensors.
func (o elementGradients) WhereBackwardInto(at tensor.Context, dx, dy, grad, condition *tensor.Tensor) error {
	return o.set.sumPair(at, opWhereBackward, [2]term{
		{opWhereBackward, 2, step{dx, [4]*tensor.Tensor{grad, condition}}},
		{opElseBackward, 2, step{dy, [4]*tensor.Tensor{grad, condition}}},
	}, grad, condition)
}

// term is the gradient of one of two operands: an operation on the first so many reads of its step.
type term struct {
	op    operation
	reads int
	step  step
}

// sumPair computes two gradients, each summed over the axes along which its operand was broadcast.
func (s *set) sumPair(at tensor.Context, op operation, terms [2]term, inputs ...*tensor.Tensor) error {
	all, err := ordered(terms[0].step, terms[1].step)
	if err != nil {
		return failed(op, err, given(terms[0].step.out, terms[1].step.out), inputs...)
	}
	for _, i := range all.steps[:all.count] {
		t := &terms[i]
		if err := s.summedInto(at, key{op: t.op}, t.step.out, t.step.reads[:t.reads]...); err != nil {
			return renamed(op, err)
		}
	}
	return nil
}
