package plan_test

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/internal/kept"
)

// keep requires that testdata has these lines.
func keep(t *testing.T, name, text string) {
	t.Helper()
	file := "testdata/" + name
	kept.Text(t, *update, file, text)
}

// sum is a short sum of a text.
func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16] }

// Each operation on each type has the text whose sum testdata has: a change of one is seen.
func TestTextsOfOperations(t *testing.T) {
	shaped := of
	var text strings.Builder
	is := reflect.TypeFor[expr.Expr]()
	line := func(name string, of tensor.Type, results ...reflect.Value) {
		for _, r := range results {
			e, ok := r.Interface().(expr.Expr)
			if !ok || e.Err() != nil {
				continue
			}
			axes := []int{-1}
			if e.Depth() == 0 {
				axes = nil
			}
			p, err := plan.New(axes, e)
			if err != nil { // an operand that the expression does not have
				continue
			}
			layouts := make([]layout.Layout, len(p.Operands))
			for i := range layouts {
				layouts[i] = shaped(t, 6, 40)
			}
			if p.Operands[p.Inputs].Row {
				layouts[p.Inputs] = shaped(t, 6, 1)
			}
			var g plan.Geometry
			require.NoError(t, p.Fit(&g, layouts, make([]uint64, len(layouts))), "%s %v", name, of)
			fmt.Fprintf(&text, "%s %v: %s\n", name, of, sum(p.Emit(g.Variant)))
		}
	}
	for m := range is.Methods() {
		if m.Type.NumOut() == 0 || m.Type.Out(0) != is || m.Type.IsVariadic() {
			continue
		}
		for _, of := range tensor.Types() {
			args := []reflect.Value{reflect.ValueOf(expr.Input(0, of))}
			to := []tensor.Type{of}
			for i := 1; i < m.Type.NumIn(); i++ {
				switch in := m.Type.In(i); {
				case in == is:
					args = append(args, reflect.ValueOf(expr.Input(i, of)))
				case in == reflect.TypeFor[tensor.Type]():
					args, to = append(args, reflect.ValueOf(of)), tensor.Types()
				default:
					args = append(args, reflect.Zero(in))
				}
			}
			for _, other := range to {
				name := m.Name
				if len(to) > 1 {
					args[1], name = reflect.ValueOf(other), name+" to "+other.String()
				}
				line(name, of, m.Func.Call(args)...)
			}
		}
	}
	for _, of := range tensor.Types() {
		a, b := inputs(of)
		for name, e := range map[string]expr.Expr{"select": expr.Select(a, a, b), "fma": expr.Fma(a, b, a)} {
			line(name, of, reflect.ValueOf(e))
		}
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	keep(t, "operations.txt", strings.Join(slices.Sorted(slices.Values(lines)), "\n")+"\n")
}

// Each program of schedules has the geometry, the schedules and the texts that testdata has.
func TestTextsOfSchedules(t *testing.T) {
	var text strings.Builder
	for _, c := range schedules() {
		p, _, _, g, _ := c.operands(t)
		x, y := g.Grid()
		fmt.Fprintf(&text, "%s: %v of %v, exact %t, grid %dx%d, %d bytes of scratch, %d of tickets: %s\n",
			c.name, g.Schedule(), p, p.Exact(), x, y, p.ScratchBytes(&g), g.TicketBytes(), p.Describe(g.Kind()))
		for _, s := range p.Schedules(&g) {
			with := g
			with.Apply(s)
			x, y := with.Grid()
			fmt.Fprintf(&text, "\t%v: grid %dx%d, %d splits of %d, %d bytes of scratch, %v, %d parameters, %s\n",
				s, x, y, with.Splits, with.Chunk, p.ScratchBytes(&with), p.Passes(with.Variant), len(p.Params(with.Variant)), sum(p.Emit(with.Variant)))
		}
	}
	keep(t, "schedules.txt", text.String())
}

// The rule chooses the schedules that testdata has, by the numbers of rows and columns, the type and the axis: it is measured
// knowledge.
func TestRule(t *testing.T) {
	shaped := of
	var text strings.Builder
	for _, of := range []tensor.Type{tensor.Float32, tensor.BFloat16, tensor.Int64} {
		a, b := inputs(of)
		for _, c := range []struct {
			name    string
			axes    []int
			of      expr.Expr
			turned  bool
			columns bool
		}{
			{name: "neg", of: a.Neg()},
			{name: "bias", of: a.Add(b)},
			{name: "neg of columns", of: a.Neg(), turned: true},
			{name: "sum of rows", axes: []int{-1}, of: a.Sum()},
			{name: "sum of columns", axes: []int{-2}, of: a.Sum(), columns: true},
			{name: "variance of rows", axes: []int{-1}, of: a.Var(0)},
			{name: "softmax of rows", axes: []int{-1}, of: a.Cast(tensor.Float32).Softmax()},
			{name: "softmax of columns", axes: []int{-2}, of: a.Cast(tensor.Float32).Softmax()},
		} {
			p := program(t, c.axes, c.of)
			for _, rows := range []int{1, 2, 9, 33, 300, 2048, 20000} {
				for _, columns := range []int{1, 4, 5, 32, 70, 1024, 2047, 2048, 5000, 70000} {
					whole := shaped(t, rows, columns)
					layouts := []layout.Layout{whole}
					if c.turned {
						turned, err := shaped(t, columns, rows).Transpose(0, 1)
						require.NoError(t, err)
						layouts[0] = turned
					}
					if p.Inputs == 2 {
						layouts = append(layouts, shaped(t, columns))
					}
					switch {
					case !p.Operands[p.Inputs].Row:
						layouts = append(layouts, whole)
					case c.columns:
						layouts = append(layouts, shaped(t, 1, columns))
					default:
						layouts = append(layouts, shaped(t, rows, 1))
					}
					var g plan.Geometry
					require.NoError(t, p.Fit(&g, layouts, make([]uint64, len(layouts))))
					x, y := g.Grid()
					fmt.Fprintf(&text, "%s, %v, %dx%d: %v, grid %dx%d, %d splits of %d, of %d\n",
						c.name, of, rows, columns, g.Schedule(), x, y, g.Splits, g.Chunk, len(p.Schedules(&g)))
				}
			}
		}
	}
	keep(t, "rule.txt", text.String())
}

// Expressions that are no program are refused, with the mistake.
func TestRefusedPrograms(t *testing.T) {
	a, b := inputs(tensor.Float32)
	many := make([]expr.Expr, plan.MaxOutputs+1)
	for i := range many {
		many[i] = a
	}
	for name, c := range map[string]struct {
		axes []int
		of   []expr.Expr
		want error
	}{
		"none": {nil, nil, plan.ErrOutputs}, "too many": {nil, many, plan.ErrOutputs},
		"two types": {nil, []expr.Expr{a, expr.Input(0, tensor.Int32)}, plan.ErrInput}, "a number left out": {nil, []expr.Expr{b}, plan.ErrInput},
		"an axis from the begin": {[]int{0}, []expr.Expr{a.Sum()}, plan.ErrAxes}, "an axis twice": {[]int{-1, -2, -1}, []expr.Expr{a.Sum()}, plan.ErrAxes},
		"an index":  {[]int{-1}, []expr.Expr{expr.Index(-1).Cast(tensor.Float32).Add(a).Sum()}, plan.ErrReducedIndex},
		"a mistake": {nil, []expr.Expr{{}}, expr.ErrNoExpr},
	} {
		p, err := plan.New(c.axes, c.of...)
		require.ErrorIs(t, err, c.want, name)
		assert.Nil(t, p, name)
	}
	p, err := plan.New(nil, many[1:]...)
	require.NoError(t, err)
	operands := len(p.Operands)
	for _, c := range [][2]int{{0, 0}, {operands - 1, operands}, {operands, operands - 1}, {operands + 1, operands + 1}} {
		err := p.Fit(new(plan.Geometry), make([]layout.Layout, c[0]), make([]uint64, c[1]))
		require.EqualError(t, err, fmt.Sprintf("plan: %d layouts and %d addresses of %d operands", c[0], c[1], operands))
	}
}
