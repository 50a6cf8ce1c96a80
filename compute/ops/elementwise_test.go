package ops_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor"
)

type (
	makes2 func(tensor.Context, *tensor.Tensor, *tensor.Tensor) (*tensor.Tensor, error)
	into2  func(tensor.Context, *tensor.Tensor, *tensor.Tensor, *tensor.Tensor) error
	makes1 func(tensor.Context, *tensor.Tensor) (*tensor.Tensor, error)
	into1  func(tensor.Context, *tensor.Tensor, *tensor.Tensor) error
)

// elements are the operations on elements with their references.
type elements struct {
	name      string
	operands  int
	makes     func(x []*tensor.Tensor) (*tensor.Tensor, error)
	into      func(out *tensor.Tensor, x []*tensor.Tensor) error
	reference func(x []float64) float64
}

func (r *rig) binary(name string, makes makes2, into into2, f func(x, y float64) float64) elements {
	return elements{
		name, 2,
		func(x []*tensor.Tensor) (*tensor.Tensor, error) { return makes(r.s, x[0], x[1]) },
		func(out *tensor.Tensor, x []*tensor.Tensor) error { return into(r.s, out, x[0], x[1]) },
		func(x []float64) float64 { return f(x[0], x[1]) },
	}
}

func (r *rig) unary(name string, makes makes1, into into1, f func(x float64) float64) elements {
	return elements{
		name, 1,
		func(x []*tensor.Tensor) (*tensor.Tensor, error) { return makes(r.s, x[0]) },
		func(out *tensor.Tensor, x []*tensor.Tensor) error { return into(r.s, out, x[0]) },
		func(x []float64) float64 { return f(x[0]) },
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func gelu(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }

func geluTanh(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// slope is the derivative of a function, by differences of the sixth order.
func slope(f func(float64) float64, x float64) float64 {
	const h = 1e-2
	d := func(k float64) float64 { return f(x+k*h) - f(x-k*h) }
	return (45*d(1) - 9*d(2) + d(3)) / (60 * h)
}

func (r *rig) all() []elements {
	o := r.o
	return []elements{
		r.binary("add", o.Add, o.AddInto, func(x, y float64) float64 { return x + y }),
		r.binary("sub", o.Sub, o.SubInto, func(x, y float64) float64 { return x - y }),
		r.binary("mul", o.Mul, o.MulInto, func(x, y float64) float64 { return x * y }),
		r.binary("div", o.Div, o.DivInto, func(x, y float64) float64 { return x / y }),
		r.binary("eq", o.Eq, o.EqInto, func(x, y float64) float64 { return truth(x == y) }),
		r.binary("ne", o.Ne, o.NeInto, func(x, y float64) float64 { return truth(x != y) }),
		r.binary("lt", o.Lt, o.LtInto, func(x, y float64) float64 { return truth(x < y) }),
		r.binary("le", o.Le, o.LeInto, func(x, y float64) float64 { return truth(x <= y) }),
		r.binary("gt", o.Gt, o.GtInto, func(x, y float64) float64 { return truth(x > y) }),
		r.binary("ge", o.Ge, o.GeInto, func(x, y float64) float64 { return truth(x >= y) }),
		r.unary("neg", o.Neg, o.NegInto, func(x float64) float64 { return -x }),
		r.unary("abs", o.Abs, o.AbsInto, math.Abs),
		r.unary("sqrt", o.Sqrt, o.SqrtInto, math.Sqrt),
		r.unary("rsqrt", o.Rsqrt, o.RsqrtInto, func(x float64) float64 { return 1 / math.Sqrt(x) }),
		r.unary("exp", o.Exp, o.ExpInto, math.Exp),
		r.unary("log", o.Log, o.LogInto, math.Log),
		r.unary("tanh", o.Tanh, o.TanhInto, math.Tanh),
		r.unary("sigmoid", o.Sigmoid, o.SigmoidInto, sigmoid),
		r.unary("relu", o.Relu, o.ReluInto, func(x float64) float64 { return max(x, 0) }),
		r.unary("gelu", o.Gelu, o.GeluInto, gelu),
		r.unary("gelu by tanh", o.GeluTanh, o.GeluTanhInto, geluTanh),
		r.unary("silu", o.Silu, o.SiluInto, func(x float64) float64 { return x * sigmoid(x) }),
		r.unary("copy", o.Copy, o.CopyInto, func(x float64) float64 { return x }),
		r.unary("clamp", func(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) { return o.Clamp(at, x, -0.5, 1) },
			func(at tensor.Context, out, x *tensor.Tensor) error { return o.ClampInto(at, out, x, -0.5, 1) },
			func(x float64) float64 { return min(max(x, -0.5), 1) }),
		{
			"where", 3, func(x []*tensor.Tensor) (*tensor.Tensor, error) { return o.Where(r.s, x[0], x[1], x[2]) },
			func(out *tensor.Tensor, x []*tensor.Tensor) error { return o.WhereInto(r.s, out, x[0], x[1], x[2]) },
			func(x []float64) float64 {
				if x[0] != 0 {
					return x[1]
				}
				return x[2]
			},
		},
		r.binary("relu backward", o.ReluBackward, o.ReluBackwardInto, func(g, x float64) float64 {
			if x <= 0 {
				return 0
			}
			return g
		}),
		r.binary("gelu backward", o.GeluBackward, o.GeluBackwardInto, func(g, x float64) float64 { return g * slope(gelu, x) }),
		r.binary("gelu by tanh backward", o.GeluTanhBackward, o.GeluTanhBackwardInto, func(g, x float64) float64 { return g * slope(geluTanh, x) }),
		r.binary("silu backward", o.SiluBackward, o.SiluBackwardInto, func(g, x float64) float64 {
			return g * slope(func(x float64) float64 { return x * sigmoid(x) }, x)
		}),
		r.binary("sigmoid backward", o.SigmoidBackward, o.SigmoidBackwardInto, func(g, y float64) float64 { return g * y * (1 - y) }),
		r.binary("tanh backward", o.TanhBackward, o.TanhBackwardInto, func(g, y float64) float64 { return g * (1 - y*y) }),
	}
}

// Each operation on elements computes its reference, of any layouts and broadcast shapes.
func TestElementwise(t *testing.T) {
	all := newRig(t)
	for _, e := range all.all() {
		t.Run(e.name, func(t *testing.T) {
			r := all.in(t)
			for rank := range 4 {
				shape := r.shape(rank)
				var arrays []array
				var operands []*tensor.Tensor
				for i := range e.operands {
					part := shape
					if i < e.operands-1 && !strings.HasSuffix(e.name, "backward") {
						part = r.part(shape)
					}
					a := newArray(part, func() float64 { return math.Round(16*r.random.NormFloat64()) / 8 })
					operands, arrays = append(operands, r.tensor(a)), append(arrays, a)
				}
				var want []float64
				each(shape, func(index []int) {
					var x []float64
					for _, a := range arrays {
						x = append(x, a.values[a.index(index)])
					}
					want = append(want, e.reference(x))
				})
				y, err := e.makes(operands)
				require.NoError(t, err, e.name)
				r.near(want, y, 1e-6, 1, e.name, shape)
				out := r.view(y.Type(), y.Shape())
				require.NoError(t, e.into(out, operands), e.name)
				r.near(want, out, 1e-6, 1, e.name, shape)
			}
		})
	}
}
