package plan_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// scheduled is a program on operands of some shapes: inputs, then outputs.
type scheduled struct {
	name    string
	axes    []int
	of      []expr.Expr
	shapes  [][]int
	turned  bool // the input is transposed
	skip    int  // elements before the first one
	atLeast int  // schedules
}

func schedules() []scheduled {
	x, y := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32)
	halves, whole := expr.Input(0, tensor.BFloat16), expr.Input(0, tensor.Int32)
	rows, all := []int{-1}, plan.All
	return []scheduled{
		{name: "element-wise", of: []expr.Expr{x.Mul(y).Add(x)}, shapes: [][]int{{16 * 1031}, {16 * 1031}, {16 * 1031}}, atLeast: 18},
		{name: "a rest", of: []expr.Expr{x.Neg()}, shapes: [][]int{{4099}, {4099}}, atLeast: 9},
		{name: "shorter than a thread's", of: []expr.Expr{x.Neg()}, shapes: [][]int{{3}, {3}}, atLeast: 9},
		{name: "a bias", of: []expr.Expr{x.Add(y)}, shapes: [][]int{{24, 40}, {40}, {24, 40}}, atLeast: 18},
		{name: "two neighbours", of: []expr.Expr{x.Add(y)}, shapes: [][]int{{24, 6}, {6}, {24, 6}}, atLeast: 18},
		{name: "turned", of: []expr.Expr{x.Neg()}, shapes: [][]int{{50, 70}, {70, 50}}, turned: true, atLeast: 2},
		{name: "turned and narrow", of: []expr.Expr{x.Neg()}, shapes: [][]int{{9, 70}, {70, 9}}, turned: true, atLeast: 9},
		{name: "not aligned", of: []expr.Expr{halves.Neg()}, shapes: [][]int{{1000}, {1000}}, skip: 1, atLeast: 9},
		{name: "indices", of: []expr.Expr{expr.Index(-1).Cast(tensor.Float32).Add(x)}, shapes: [][]int{{700}, {700}}, atLeast: 9},
		{name: "sums", axes: rows, of: []expr.Expr{x.Sum()}, shapes: [][]int{{40, 520}, {40, 1}}, atLeast: 12},
		{name: "short rows", axes: rows, of: []expr.Expr{x.Sum()}, shapes: [][]int{{70, 3}, {70, 1}}, atLeast: 4},
		{name: "softmax", axes: rows, of: []expr.Expr{x.Softmax()}, shapes: [][]int{{5, 520}, {5, 520}}, atLeast: 12},
		{name: "softmax of halves", axes: rows, of: []expr.Expr{halves.Softmax()}, shapes: [][]int{{5, 264}, {5, 264}}, atLeast: 12},
		{name: "softmax with a rest", axes: all, of: []expr.Expr{x.Softmax()}, shapes: [][]int{{1037}, {1037}}, atLeast: 12},
		{name: "norm", axes: rows, of: []expr.Expr{x.LayerNorm(1e-5).Mul(y)}, shapes: [][]int{{5, 520}, {520}, {5, 520}}, atLeast: 16},
		{name: "log-sum-exp and softmax", axes: rows, of: []expr.Expr{x.LogSumExp(), x.LogSoftmax()}, shapes: [][]int{{5, 96}, {5, 1}, {5, 96}}, atLeast: 8},
		{name: "columns", axes: rows, of: []expr.Expr{x.Sum()}, shapes: [][]int{{300, 70}, {70, 1}}, turned: true, atLeast: 8},
		{name: "greatest", axes: all, of: []expr.Expr{whole.ArgMax()}, shapes: [][]int{{9000}, {}}, atLeast: 12},
		{name: "long", axes: all, of: []expr.Expr{x.Sum()}, shapes: [][]int{{40000}, {}}, atLeast: 20},
		{name: "variance of long rows", axes: rows, of: []expr.Expr{x.Var(0)}, shapes: [][]int{{2, 9000}, {2, 1}}, atLeast: 20},
	}
}

// operands places the operands of a case in memory of their own, with numbers whose sums do not depend on the order, and the
// sizes.
func (c *scheduled) operands(t helper) (p *plan.Program, m *memory, arrays []*array, g plan.Geometry, addresses []uint64) {
	t.Helper()
	p, err := plan.New(c.axes, c.of...)
	require.NoError(t, err)
	m = newMemory()
	var layouts []layout.Layout
	for i, o := range p.Operands {
		l := of(t, c.shapes[i]...)
		if c.turned && i == 0 {
			l, err = l.Transpose(0, 1)
			require.NoError(t, err)
		}
		a := m.array(o.Type, l, c.skip)
		if i < p.Inputs {
			a.fill(func(at int) float64 { return float64((at*7+i)%5 - 2) })
		}
		arrays, layouts, addresses = append(arrays, a), append(layouts, l), append(addresses, a.at)
	}
	require.NoError(t, p.Fit(&g, layouts, addresses))
	return p, m, arrays, g, addresses
}

// Every schedule computes the same as the one of the rule: bit for bit where the order does not matter.
func TestSchedulesComputeTheSame(t *testing.T) {
	for _, c := range schedules() {
		t.Run(c.name, func(t *testing.T) {
			p, m, arrays, g, addresses := c.operands(t)
			launch(t, p, m, &g, addresses)
			out := arrays[p.Inputs]
			want, wantBytes := out.values(), bytes.Clone(out.bytes)
			all := p.Schedules(&g)
			assert.GreaterOrEqual(t, len(all), c.atLeast)
			assert.LessOrEqual(t, len(all), 40)
			assert.Equal(t, g.Schedule(), all[0])
			names := map[string]bool{}
			for _, s := range all {
				names[s.String()] = true
				clear(out.bytes)
				tried := g
				require.True(t, tried.Allows(s))
				tried.Apply(s)
				require.Equal(t, s, tried.Schedule())
				require.Equal(t, g.Kind(), tried.Kind())
				launch(t, p, m, &tried, addresses)
				if p.Exact() {
					require.Equal(t, wantBytes, out.bytes, s)
					continue
				}
				for i, v := range out.values() {
					require.InDelta(t, want[i], v, 1e-5*math.Max(1, math.Abs(want[i])), s)
				}
			}
			assert.Len(t, names, len(all), "names")
		})
	}
}

// A schedule of a size class is applied to other sizes of it.
func TestSchedulesOfOtherSizes(t *testing.T) {
	long := scheduled{axes: []int{-1}, of: []expr.Expr{expr.Input(0, tensor.Float32).Sum()}, shapes: [][]int{{2, 40000}, {2, 1}}}
	p, _, _, g, _ := long.operands(t)
	for _, s := range p.Schedules(&g) {
		other := long
		other.shapes = [][]int{{3, 33001}, {3, 1}}
		p, m, arrays, g, addresses := other.operands(t)
		if s.Vector > max(g.Widest, 1) {
			continue
		}
		require.True(t, g.Allows(s))
		g.Apply(s)
		launch(t, p, m, &g, addresses)
		for row, v := range arrays[1].values() {
			want := 0.0
			for i := range 33001 {
				want += float64(((row*33001+i)*7)%5 - 2)
			}
			require.Equal(t, want, v, s)
		}
	}
	many := scheduled{axes: []int{-1}, of: long.of, shapes: [][]int{{plan.MaxSplitRows + 1, 300}, {plan.MaxSplitRows + 1, 1}}}
	_, _, _, g, _ = many.operands(t)
	assert.False(t, g.Allows(plan.Schedule{Lanes: 256, Block: 256, Blocks: 264, Vector: 1}), "there are as many tickets as rows that are split")
}

// The blocks of a row that is split cover it, each with a part of its own, and they are no more than the schedule has for the row.
func TestPartsOfSplitRows(t *testing.T) {
	p := program(t, []int{-1}, expr.Input(0, tensor.Float32).Sum())
	found := 0
	for _, rows := range []int{1, 2, 7} {
		for _, blocks := range []int{132, 264, 528} {
			for _, each := range []int{256, 1024, 4096, 8192} { // elements of a turn of all threads of a block, of some schedule
				for turns := 1; turns <= 2; turns++ {
					for more := -2; more <= 2; more++ {
						cols := blocks / rows * (turns*each + more)
						l, err := layout.New([]int{rows, cols}, []int{(cols + 7) &^ 7, 1}, 0)
						require.NoError(t, err)
						var g plan.Geometry
						require.NoError(t, p.Fit(&g, []layout.Layout{l, of(t, rows)}, make([]uint64, 2)))
						for _, s := range p.Schedules(&g) {
							if s.Blocks == 0 {
								continue
							}
							g.Apply(s)
							found++
							about := fmt.Sprintf("%d rows of %d, %v: %d parts of %d", rows, cols, s, g.Splits, g.Chunk)
							require.GreaterOrEqual(t, g.Splits*g.Chunk, cols, about)
							require.Less(t, (g.Splits-1)*g.Chunk, cols, about)
							require.LessOrEqual(t, g.Splits, max(int(s.Blocks)/rows, 1), about)
							if g.Widest > 0 {
								require.Zero(t, g.Chunk%(int(s.Vector)*int(s.Lanes)), about)
							}
						}
					}
				}
			}
		}
	}
	assert.Greater(t, found, 1000)
}

func TestProgramsInWords(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	for want, exact := range map[string]bool{
		"float32 = neg(float32[0])": true, "float32 = sum(float32[0]) over axes [-1]": false, "float32 = max(float32[0]) over axes [-1]": true,
	} {
		e := map[string]expr.Expr{"float32 = neg(float32[0])": x.Neg(), "float32 = sum(float32[0]) over axes [-1]": x.Sum(), "float32 = max(float32[0]) over axes [-1]": x.Max()}[want]
		var axes []int
		if e.Depth() > 0 {
			axes = []int{-1}
		}
		p, err := plan.New(axes, e)
		require.NoError(t, err)
		assert.Equal(t, want, p.String())
		assert.Equal(t, exact, p.Exact(), want)
	}
	c := schedules()[3]
	p, _, _, g, _ := c.operands(t)
	assert.Equal(t, "outer=0 inner=2 steps=unit,unit,unit widest=8", p.Describe(g.Kind()))
}
