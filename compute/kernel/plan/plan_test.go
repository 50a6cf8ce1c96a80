package plan_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

func program(t helper, axes []int, outputs ...expr.Expr) *plan.Program {
	t.Helper()
	p, err := plan.New(axes, outputs...)
	require.NoError(t, err)
	return p
}

func inputs(of tensor.Type) (a, b expr.Expr) { return expr.Input(0, of), expr.Input(1, of) }

func TestElementsOfContiguousTensors(t *testing.T) {
	a, b := inputs(tensor.Float32)
	p := program(t, nil, a.Mul(b).Add(a).Relu().Mul(expr.Number(2)).Sub(b))
	for _, n := range []int{1, 2, 3, 4, 5, 255, 1023, 1024, 1025, 4099} {
		for _, skip := range []int{0, 1} {
			m := newMemory()
			x := m.array(tensor.Float32, of(t, n), skip).fill(normal(1))
			y := m.array(tensor.Float32, of(t, n), 0).fill(normal(2))
			z := m.array(tensor.Float32, of(t, n), 0)
			g := run(t, p, m, x, y, z)
			assert.Equal(t, map[int]uint8{0: 4, 1: 1}[skip], g.Vector)
			for i := range n {
				a, b := float32(x.get(i)), float32(y.get(i))
				v := a * b
				want := max(v+a, 0)*2 - b
				require.Equal(t, float64(want), z.get(i), "element %d of %d", i, n)
			}
		}
	}
}

// rowCases are shapes for each schedule.
var rowCases = [][2]int{{1, 1}, {3, 4}, {300, 3}, {5, 40}, {9, 64}, {3, 1000}, {2, 1024}, {2, 1300}, {2, 8192}, {1, 10000}, {1, 40001}, {2, 65536}}

func TestSumsOfRows(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, []int{-1}, x.Sum(), x.Max(), x.ArgMin(), x.LogSumExp(), x.Var(1))
	for _, shape := range rowCases {
		m := newMemory()
		in := m.array(tensor.Float32, of(t, shape[0], shape[1]), 0).fill(normal(3))
		sum, top := m.array(tensor.Float32, of(t, shape[0]), 0), m.array(tensor.Float32, of(t, shape[0]), 0)
		arg := m.array(tensor.Int64, of(t, shape[0], 1), 0)
		lse, variance := m.array(tensor.Float32, of(t, shape[0]), 0), m.array(tensor.Float32, of(t, shape[0]), 0)
		run(t, p, m, in, sum, top, arg, lse, variance)
		values := in.values()
		for r := range shape[0] {
			row := values[r*shape[1]:][:shape[1]]
			var want, exps, squares float64
			high, low, at := math.Inf(-1), math.Inf(1), 0
			for i, v := range row {
				want += v
				exps += math.Exp(v)
				high = max(high, v)
				if v < low {
					low, at = v, i
				}
			}
			for _, v := range row {
				squares += (v - want/float64(len(row))) * (v - want/float64(len(row)))
			}
			near(t, want, sum.get(r), 1e-5*math.Sqrt(float64(len(row)))*10, shape)
			assert.Equal(t, high, top.get(r), shape)
			assert.Equal(t, float64(at), arg.get(r), shape)
			near(t, math.Log(exps), lse.get(r), 1e-5, shape)
			near(t, squares/float64(len(row)-1), variance.get(r), 1e-5*squares, shape)
		}
	}
}

// Where row values alone are wanted, the last block of a row makes them.
func TestSumsOfSplitRows(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, []int{-1}, x.Sum(), x.ArgMax())
	for _, shape := range [][2]int{{1, 40001}, {2, 65536}, {1, 1<<17 + 3}, {1, 1 << 18}} {
		m := newMemory()
		in := m.array(tensor.Float32, of(t, shape[0], shape[1]), 0).fill(func(i int) float64 { return float64(i*7919%31 - 15) })
		sum, arg := m.array(tensor.Float32, of(t, shape[0]), 0), m.array(tensor.Int64, of(t, shape[0]), 0)
		g := run(t, p, m, in, sum, arg)
		assert.True(t, g.Split)
		assert.Len(t, p.Passes(g.Variant), 1)
		for r := range shape[0] {
			want, at := 0.0, -1
			for i, v := range in.values()[r*shape[1]:][:shape[1]] {
				want += v
				if v == 15 && at < 0 {
					at = i
				}
			}
			assert.Equal(t, want, sum.get(r), shape)
			assert.Equal(t, float64(at), arg.get(r), shape)
		}
	}
}

func near(t *testing.T, want, got, within float64, about any) {
	t.Helper()
	if math.IsNaN(want) && math.IsNaN(got) {
		return
	}
	assert.InDelta(t, want, got, within, "%v", about)
}

func TestSoftmaxOfRows(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, []int{-1}, x.Softmax(), x.Max())
	for _, shape := range rowCases {
		m := newMemory()
		in := m.array(tensor.Float32, of(t, shape[0], shape[1]), 0).fill(normal(4))
		out, top := m.array(tensor.Float32, of(t, shape[0], shape[1]), 0), m.array(tensor.Float32, of(t, shape[0]), 0)
		run(t, p, m, in, out, top)
		values, got := in.values(), out.values()
		for r := range shape[0] {
			sum := 0.0
			for _, v := range values[r*shape[1]:][:shape[1]] {
				sum += math.Exp(v)
			}
			for i, v := range values[r*shape[1]:][:shape[1]] {
				want := math.Exp(v) / sum
				require.InDelta(t, want, got[r*shape[1]+i], 1e-5*want, shape)
			}
		}
	}
}

func TestLayerNormWithWeights(t *testing.T) {
	x, w, b := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32), expr.Input(2, tensor.Float32)
	p := program(t, []int{-1}, x.LayerNorm(1e-5).Mul(w).Add(b))
	for _, shape := range rowCases {
		m := newMemory()
		in := m.array(tensor.Float32, of(t, shape[0], shape[1]), 0).fill(normal(4))
		weight, bias := m.array(tensor.Float32, of(t, shape[1]), 0).fill(normal(5)), m.array(tensor.Float32, of(t, shape[1]), 0).fill(normal(6))
		out := m.array(tensor.Float32, of(t, shape[0], shape[1]), 0)
		run(t, p, m, in, weight, bias, out)
		values, got := in.values(), out.values()
		for r := range shape[0] {
			row := values[r*shape[1]:][:shape[1]]
			mean, variance := 0.0, 0.0
			for _, v := range row {
				mean += v / float64(len(row))
			}
			for _, v := range row {
				variance += (v - mean) * (v - mean) / float64(len(row))
			}
			for i, v := range row {
				want := (v-mean)/math.Sqrt(variance+1e-5)*weight.get(i) + bias.get(i)
				require.InDelta(t, want, got[r*shape[1]+i], 2e-5, shape)
			}
		}
	}
}

// Profiles show the name of a kernel: it has the operations, is an identifier of PTX, and is the same for the same expressions
// alone.
func TestNamesOfKernels(t *testing.T) {
	a, b := inputs(tensor.Float32)
	names := map[string]bool{}
	for _, p := range []*plan.Program{
		program(t, nil, a.Add(b)), program(t, nil, b.Add(a)), program(t, nil, a.Add(a)), program(t, nil, a), program(t, nil, a.Cast(tensor.Int8)),
		program(t, nil, a.Add(expr.Number(1))), program(t, nil, a.Add(expr.Number(2))), program(t, []int{-1}, a.Sum()), program(t, []int{-2}, a.Sum()),
		program(t, plan.All, a.LayerNorm(1e-5).Mul(b)), program(t, nil, a.Gelu()), program(t, nil, a.Gelu(), a.Relu()),
	} {
		name := p.Name()
		assert.Regexp(t, `^vram(_[a-z0-9]+)+_[0-9a-f]{4}$`, name)
		assert.LessOrEqual(t, len(name), 80)
		assert.False(t, names[name], name)
		names[name] = true
	}
	assert.Equal(t, program(t, nil, a.Add(b)).Name(), program(t, nil, a.Add(b)).Name())
	assert.Contains(t, program(t, nil, a.Gelu()).Name(), "vram_mul_erf_add_float32_")
	assert.Contains(t, program(t, nil, a).Name(), "vram_copy_float32_")
}

func TestAWalkVisitsEachNodeOnce(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	for range 16 {
		x = x.Add(x)
	}
	assert.Equal(t, 17, plan.Visits(x))
}

// Each operation of the expression uses the previous one twice, so that its text doubles each time. Its program has one
// operation for each and a bounded text, which differs from the text of a program that begins alike.
func TestSharedPartsAreOneAndTheTextIsBounded(t *testing.T) {
	doubled := func(last expr.Expr) expr.Expr {
		for range 60 {
			last = last.Add(last)
		}
		return last
	}
	x := expr.Input(0, tensor.Float32)
	texts := map[string]bool{}
	for _, e := range []expr.Expr{
		doubled(x), doubled(x.Neg()), doubled(doubled(x)), doubled(x).Sum(), doubled(x).Softmax(), doubled(x.Sub(x.Sum())), doubled(x).Exp().LogSumExp(),
		doubled(x).Add(doubled(x.Neg())), doubled(x).Add(doubled(x.Abs())), // that differ after the end of their texts
	} {
		assert.LessOrEqual(t, len(e.String()), expr.MaxText)
		p, err := plan.New([]int{-1}, e)
		require.NoError(t, err)
		assert.Less(t, len(p.String()), expr.MaxText+100)
		assert.False(t, texts[p.String()], p.String())
		texts[p.String()] = true
		l, err := layout.Of(8, 64)
		require.NoError(t, err)
		out := l
		if p.Operands[1].Row {
			out, err = layout.Of(8, 1)
			require.NoError(t, err)
		}
		var g plan.Geometry
		require.NoError(t, p.Fit(&g, []layout.Layout{l, out}, make([]uint64, 2)))
		assert.Less(t, strings.Count(p.Emit(g.Variant), "add.f32"), 4000)
	}
	a, err := plan.New(nil, doubled(x), doubled(x).Neg())
	require.NoError(t, err)
	b, err := plan.New(nil, doubled(x), doubled(x))
	require.NoError(t, err)
	assert.NotEqual(t, a.String(), b.String())
}

// An output that does not depend on the elements has a value for each of them, also where another output depends on them.
func TestAConstantOutputHasAllElements(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, nil, x.Neg(), expr.Number(7))
	m := newMemory()
	in := m.array(tensor.Float32, of(t, 3, 5), 0).fill(normal(1))
	negative, sevens := m.array(tensor.Float32, of(t, 3, 5), 0), m.array(p.Operands[2].Type, of(t, 3, 5), 0)
	run(t, p, m, in, negative, sevens)
	for i := range 15 {
		assert.Equal(t, -in.get(i), negative.get(i))
		assert.Equal(t, 7.0, sevens.get(i))
	}
	for _, o := range p.Operands {
		assert.False(t, o.Row)
	}
}

// Tensors that lie alike in memory are gone over as one dimension, in whichever order their dimensions are.
func TestTensorsThatLieAlikeAreOneDimension(t *testing.T) {
	a, b := inputs(tensor.Float32)
	p := program(t, nil, a.Add(b))
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		l, err := of(t, 4, 12, 20).Permute(order...)
		require.NoError(t, err)
		var g plan.Geometry
		require.NoError(t, p.Fit(&g, []layout.Layout{l, l, l}, make([]uint64, 3)))
		assert.Equal(t, uint8(1), g.Inner, order)
		assert.Equal(t, uint8(4), g.Vector, order)
	}
}

// Rows of one element are read one by one, also where each begins at a multiple of a vector.
func TestRowsOfOneElementHaveNoVectors(t *testing.T) {
	p := program(t, []int{-1}, expr.Input(0, tensor.Float32).Sum())
	for cols, widest := range map[int]uint8{1: 1, 2: 2, 3: 1, 4: 4, 8: 8} {
		l, err := layout.New([]int{50, cols}, []int{8, 1}, 0)
		require.NoError(t, err)
		var g plan.Geometry
		require.NoError(t, p.Fit(&g, []layout.Layout{l, of(t, 50)}, make([]uint64, 2)))
		assert.Equal(t, widest, g.Widest, cols)
	}
}

// Axes of more dimensions than the elements have are refused, and so is an output of rows with the wrong shape, by its number.
func TestShapesThatDoNotFit(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	var g plan.Geometry
	p := program(t, []int{-1, -3}, x.Sum())
	require.ErrorIs(t, p.Fit(&g, []layout.Layout{of(t, 2, 3), of(t)}, make([]uint64, 2)), plan.ErrAxes)
	require.NoError(t, p.Fit(&g, []layout.Layout{of(t, 4, 2, 3), of(t, 2)}, make([]uint64, 2)))
	for axis := -3; axis < 0; axis++ {
		p := program(t, []int{axis}, x.Sum(), x.Max(), x.Min(), x.Prod())
		shape, kept := []int{4, 2, 3}, []int{4, 2, 3}
		kept[3+axis] = 1
		dropped := append(append([]int{}, shape[:3+axis]...), shape[4+axis:]...)
		for operand := 1; operand <= 4; operand++ {
			for _, c := range []struct{ has, want []int }{{shape, kept}, {[]int{7, 7}, dropped}, {[]int{5}, dropped}} {
				layouts := []layout.Layout{of(t, shape...)}
				for other := 1; other <= 4; other++ {
					layouts = append(layouts, of(t, kept...))
				}
				layouts[operand] = of(t, c.has...)
				var wrong *plan.ShapeError
				require.ErrorAs(t, p.Fit(&g, layouts, make([]uint64, 5)), &wrong)
				assert.Equal(t, plan.ShapeError{Operand: operand, Shape: c.has, Want: c.want}, *wrong)
			}
		}
	}
}

// Nothing is computed by a program or a geometry that is none.
func TestNoProgramAndNoGeometry(t *testing.T) {
	var p *plan.Program
	var g *plan.Geometry
	assert.True(t, p.Exact())
	assert.False(t, p.Reduces())
	assert.Empty(t, p.Name()+p.String())
	assert.Empty(t, p.Schedules(&plan.Geometry{}))
	assert.Empty(t, p.Params(plan.Variant{}))
	assert.Empty(t, p.Passes(plan.Variant{}))
	assert.Zero(t, p.ScratchBytes(&plan.Geometry{Rows: 1, Splits: 1}))
	require.ErrorIs(t, p.Fit(&plan.Geometry{}, nil, nil), plan.ErrOutputs)
	x, y := g.Grid()
	assert.Equal(t, [2]int{}, [2]int{x, y})
	assert.True(t, g.Empty())
	assert.Zero(t, g.TicketBytes())
	assert.Zero(t, g.Value(plan.Param{Kind: plan.Rows}))
	assert.Zero(t, g.Schedule())
	assert.False(t, g.Allows(plan.Schedule{}))
	g.Apply(plan.Schedule{})
}
