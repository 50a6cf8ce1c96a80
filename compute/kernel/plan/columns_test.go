package plan_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// matrix is a part of a larger one, with padding before and after each of its rows.
type matrix struct {
	rows, cols    int
	before, after int
	skip          int // elements before the memory
}

func (x matrix) layout(t helper) layout.Layout {
	t.Helper()
	pitch := x.before + x.cols + x.after
	l, err := of(t, x.rows, pitch).Slice(1, x.before, x.before+x.cols, 1)
	require.NoError(t, err)
	return l
}

// oddMatrices have primes, powers of two, and their neighbours as sizes, and are aligned and not.
func oddMatrices() []matrix {
	all := []matrix{
		{rows: 1, cols: 1},
		{rows: 1, cols: 40},
		{rows: 40, cols: 1},
		{rows: 1000, cols: 1},
		{rows: 1, cols: 1000},
		{rows: 2, cols: 64},
		{rows: 16, cols: 32},
		{rows: 17, cols: 31},
		{rows: 63, cols: 65},
		{rows: 64, cols: 64},
		{rows: 65, cols: 63},
		{rows: 127, cols: 129},
		{rows: 128, cols: 128},
		{rows: 129, cols: 130},
		{rows: 257, cols: 68},
		{rows: 521, cols: 37},
		{rows: 1031, cols: 72},
		{rows: 2053, cols: 34},
	}
	for _, skip := range []int{1, 2} {
		all = append(all, matrix{rows: 300, cols: 128, skip: skip}, matrix{rows: 130, cols: 64, before: skip, after: 8 - skip})
	}
	return append(all, matrix{rows: 140, cols: 68, after: 3}, matrix{rows: 140, cols: 66, before: 4, after: 2}, matrix{rows: 70, cols: 131, after: 5})
}

// columns are the reductions of the columns of a matrix on the host, of numbers that have been rounded to the type.
type columns struct{ sum, mean, high, arg, low, variance, logSumExp []float64 }

func columnsOf(values []float64, rows, cols int) (c columns) {
	for col := range cols {
		sum, high, low, arg, exps, squares := 0.0, math.Inf(-1), math.Inf(1), 0, 0.0, 0.0
		for row := range rows {
			v := values[row*cols+col]
			sum += v
			if v > high {
				high, arg = v, row
			}
			low = min(low, v)
			exps += math.Exp(v)
		}
		mean := sum / float64(rows)
		for row := range rows {
			squares += (values[row*cols+col] - mean) * (values[row*cols+col] - mean)
		}
		c.sum, c.mean, c.high, c.low = append(c.sum, sum), append(c.mean, mean), append(c.high, high), append(c.low, low)
		c.arg, c.variance, c.logSumExp = append(c.arg, float64(arg)), append(c.variance, squares/float64(rows)), append(c.logSumExp, math.Log(exps))
	}
	return c
}

// turnedSchedules returns the schedule of the rule and a sample of the turned ones.
func turnedSchedules(p *plan.Program, g *plan.Geometry, each int) []plan.Schedule {
	all := p.Schedules(g)
	some := all[:1:1]
	for i, s := range all[1:] {
		if s.Turned && (i+g.Rows)%each == 0 {
			some = append(some, s)
		}
	}
	return some
}

// eachTurned executes a program on a matrix by some of its turned schedules, and calls a function with the outputs.
func eachTurned(t *testing.T, p *plan.Program, x matrix, fill func(int) float64, check func(s plan.Schedule, values []float64, outs []*array)) {
	t.Helper()
	m := newMemory()
	in := m.array(p.Operands[0].Type, x.layout(t), x.skip).fill(fill)
	arrays, layouts, addresses := []*array{in}, []layout.Layout{in.layout}, []uint64{in.at}
	for _, o := range p.Operands[1:] {
		l := of(t, x.cols)
		if !o.Row {
			l = of(t, x.rows, x.cols)
		}
		a := m.array(o.Type, l, 0)
		arrays, layouts, addresses = append(arrays, a), append(layouts, l), append(addresses, a.at)
	}
	var g plan.Geometry
	require.NoError(t, p.Fit(&g, layouts, addresses))
	for _, s := range turnedSchedules(p, &g, 5) {
		tried := g
		tried.Apply(s)
		for _, a := range arrays[1:] {
			for i := range a.bytes {
				a.bytes[i] = 0xff
			}
		}
		launch(t, p, m, &tried, addresses)
		check(s, in.values(), arrays[1:])
	}
}

// within fails where a number is further from the wanted one than it may be: of many numbers, quicker than an assertion for
// each.
func within(t *testing.T, want, got, distance float64, about ...any) {
	t.Helper()
	if !(math.Abs(want-got) <= distance) { // NaN is wrong, too
		t.Fatalf("%v, not %v: %v", got, want, about)
	}
}

// Columns of all sizes have the results of float64.
func TestColumnsOfOddSizes(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, []int{-2}, x.Sum(), x.Mean(), x.Max(), x.ArgMax(), x.Min())
	for _, size := range oddMatrices() {
		t.Run(fmt.Sprintf("%+v", size), func(t *testing.T) {
			eachTurned(t, p, size, normal(uint64(size.cols)), func(s plan.Schedule, values []float64, outs []*array) {
				want := columnsOf(values, size.rows, size.cols)
				for col := range size.cols {
					distance := 4e-6 * math.Sqrt(float64(size.rows))
					within(t, want.sum[col], outs[0].get(col), distance, s, col)
					within(t, want.mean[col], outs[1].get(col), distance/float64(size.rows)+1e-6, s, col)
					within(t, want.high[col], outs[2].get(col), 0, s, col)
					within(t, want.arg[col], outs[3].get(col), 0, s, col)
					within(t, want.low[col], outs[4].get(col), 0, s, col)
				}
			})
		})
	}
}

// Reductions of reductions, and outputs with an element for each element, are computed in passes where blocks share columns.
func TestColumnsThatAreReadAgain(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, []int{-2}, x.Var(0), x.LogSumExp(), x.Sub(x.Mean()))
	for _, size := range []matrix{{rows: 1, cols: 40}, {rows: 17, cols: 31}, {rows: 257, cols: 68}, {rows: 140, cols: 64, skip: 1}} {
		eachTurned(t, p, size, normal(5), func(s plan.Schedule, values []float64, outs []*array) {
			want := columnsOf(values, size.rows, size.cols)
			for col := range size.cols {
				within(t, want.variance[col], outs[0].get(col), 1e-5*math.Max(1, want.variance[col]), s, col, size)
				within(t, want.logSumExp[col], outs[1].get(col), 1e-5*math.Max(1, math.Abs(want.logSumExp[col])), s, col, size)
			}
			for i, v := range values {
				within(t, v-want.mean[i%size.cols], outs[2].get(i), 1e-5, s, i, size)
			}
		})
	}
}

// Elements of all types are read in vectors of their size: sums of whole numbers are exact.
func TestColumnsOfAllTypes(t *testing.T) {
	kinds := []tensor.Type{
		tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int64, tensor.Int32, tensor.Int16, tensor.Int8, tensor.Uint8,
	}
	for _, kind := range kinds {
		x := expr.Input(0, kind)
		p := program(t, []int{-2}, x.Sum(), x.Max(), x.ArgMin())
		for _, size := range []matrix{{rows: 140, cols: 64}, {rows: 140, cols: 64, skip: 1}, {rows: 37, cols: 520}, {rows: 67, cols: 33}} {
			next := uint32(9)
			fill := func(int) float64 {
				next = next*1664525 + 1013904223
				return float64(next >> 24 % 2)
			}
			eachTurned(t, p, size, fill, func(s plan.Schedule, values []float64, outs []*array) {
				want := columnsOf(values, size.rows, size.cols)
				for col := range size.cols {
					sum := want.sum[col]
					if kind == tensor.BFloat16 {
						sum = float64(half.NewBFloat16(float32(sum)).Float32())
					}
					within(t, sum, outs[0].get(col), 0, kind, s, col, size)
					within(t, want.high[col], outs[1].get(col), 0, kind, s, col, size)
					within(t, want.low[col], values[int(outs[2].get(col))*size.cols+col], 0, kind, s, col, size)
				}
			})
		}
	}
}

// An operand that neighbouring columns share is read once for them, and one with a value for each column as a vector.
func TestColumnsBesideOtherOperands(t *testing.T) {
	const rows, cols = 150, 72
	x, perRow, perCol := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32), expr.Input(2, tensor.Float32)
	p := program(t, []int{-2}, x.Mul(perRow).Add(perCol).Sum(), x.Mul(perRow).Sub(x.Max()))
	m := newMemory()
	whole := func(i int) float64 { return float64(i*7%11 - 5) }
	arrays := []*array{
		m.array(tensor.Float32, of(t, rows, cols), 0).fill(whole), m.array(tensor.Float32, of(t, rows, 1), 0).fill(whole),
		m.array(tensor.Float32, of(t, cols), 0).fill(whole), m.array(tensor.Float32, of(t, 1, cols), 0), m.array(tensor.Float32, of(t, rows, cols), 0),
	}
	layouts, addresses := make([]layout.Layout, len(arrays)), make([]uint64, len(arrays))
	for i, a := range arrays {
		layouts[i], addresses[i] = a.layout, a.at
	}
	var g plan.Geometry
	require.NoError(t, p.Fit(&g, layouts, addresses))
	assert.Equal(t, uint8(8), g.MaxBeside)
	assert.Equal(t, uint32(2), g.RowShared)
	assert.Greater(t, g.Beside, uint8(1))
	assert.Contains(t, p.Describe(g.Kind()), "strided beside=8 shared=0x2")
	for _, s := range turnedSchedules(p, &g, 1) {
		tried := g
		tried.Apply(s)
		launch(t, p, m, &tried, addresses)
		for col := range cols {
			sum, high := 0.0, math.Inf(-1)
			for row := range rows {
				sum += whole(row*cols+col)*whole(row) + whole(col)
				high = max(high, whole(row*cols+col))
			}
			require.Equal(t, sum, arrays[3].get(col), s)
			for row := range rows {
				within(t, whole(row*cols+col)*whole(row)-high, arrays[4].get(row*cols+col), 0, s)
			}
		}
	}
}

// Sums have the same bits whichever block is the last one.
func TestColumnSumsDoNotDependOnTheOrderOfBlocks(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, []int{-2}, x.Sum())
	m := newMemory()
	in, out := m.array(tensor.Float32, of(t, 1031, 68), 0).fill(normal(8)), m.array(tensor.Float32, of(t, 68), 0)
	addresses := []uint64{in.at, out.at}
	var g plan.Geometry
	require.NoError(t, p.Fit(&g, []layout.Layout{in.layout, out.layout}, addresses))
	require.True(t, g.Turned)
	require.Greater(t, g.Splits, 3)
	random := rand.New(rand.NewPCG(1, 2))
	var want []byte
	for range 4 {
		clear(out.bytes)
		launchParts(t, p, m, &g, addresses, func(blocks int) (all []interp.Launch) {
			for _, b := range random.Perm(blocks) {
				all = append(all, interp.Launch{First: uint64(b), Blocks: 1})
			}
			return all
		})
		if want == nil {
			want = bytes.Clone(out.bytes)
		}
		require.Equal(t, want, out.bytes)
	}
}

// The warps of a block exchange one reduction after the other: many need no more shared memory than a block has.
func TestSharedMemoryOfColumns(t *testing.T) {
	x := expr.Input(0, tensor.Float64)
	p := program(t, []int{-2}, x.Sum(), x.Max(), x.ArgMax(), x.Min(), x.ArgMin(), x.Prod())
	var g plan.Geometry
	require.NoError(t, p.Fit(&g, []layout.Layout{of(t, 4096, 4096), of(t, 4096), of(t, 4096), of(t, 4096), of(t, 4096), of(t, 4096), of(t, 4096)}, make([]uint64, 7)))
	all := turnedSchedules(p, &g, 1)
	assert.Greater(t, len(all), 4)
	for _, s := range all {
		g.Apply(s)
		found := regexp.MustCompile(`shared\[(\d+)\]`).FindStringSubmatch(p.Emit(g.Variant))
		require.NotNil(t, found)
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		assert.LessOrEqual(t, n, 48<<10, s)
	}
}

// Few blocks share a group of columns only where there are tickets for all groups.
func TestColumnsHaveTickets(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, []int{-2}, x.Sum())
	for _, cols := range []int{32, 33, 4096, 64 * plan.MaxSplitRows, 64*plan.MaxSplitRows + 64, 1 << 20} {
		var g plan.Geometry
		require.NoError(t, p.Fit(&g, []layout.Layout{of(t, 4096, cols), of(t, cols)}, make([]uint64, 2)))
		require.True(t, g.Turned)
		assert.True(t, !g.Split || g.TicketBytes() <= 4*plan.MaxSplitRows, cols)
		for _, s := range p.Schedules(&g) {
			g.Apply(s)
			require.True(t, !g.Split || g.TicketBytes() <= 4*plan.MaxSplitRows, "%d columns: %v", cols, s)
			require.True(t, g.Allows(s))
		}
	}
}

// Where the elements of a row are nearer to each other than rows are, the threads of a row stay neighbours.
func TestRowsWithGapsAreNotTurned(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, []int{-1}, x.Sum())
	gapped, err := of(t, 300, 512).Slice(1, 0, 512, 2)
	require.NoError(t, err)
	near, err := of(t, 512, 600).Slice(1, 0, 600, 2)
	require.NoError(t, err)
	near, err = near.Transpose(0, 1)
	require.NoError(t, err)
	for _, c := range []struct {
		layout layout.Layout
		cols   int
		turned bool
	}{{gapped, 256, false}, {near, 512, true}} {
		m := newMemory()
		in := m.array(tensor.Float32, c.layout, 0).fill(func(i int) float64 { return float64(i % 17) })
		out := m.array(tensor.Float32, of(t, 300), 0)
		g := run(t, p, m, in, out)
		assert.Equal(t, c.turned, g.Turned)
		assert.Zero(t, g.MaxBeside)
		for row := range 300 {
			want := 0.0
			for col := range c.cols {
				want += float64((row*c.cols + col) % 17)
			}
			within(t, want, out.get(row), 0, row)
		}
	}
}

// A thread may have as many neighbouring rows as divide their number and are aligned, up to eight; schedules have each number of them
// with which a warp has rows for all of its threads.
func TestNeighbouringRowsOfAThread(t *testing.T) {
	for of0, sizes := range map[tensor.Type][]uint8{tensor.Float32: {4, 2, 1}, tensor.BFloat16: {8, 4, 2}, tensor.Float64: {2, 1}, tensor.Int8: {8, 4}} {
		p := program(t, []int{-2}, expr.Input(0, of0).Max())
		for cols := 8; cols <= 600; cols++ {
			var g plan.Geometry
			require.NoError(t, p.Fit(&g, []layout.Layout{of(t, 100, cols), of(t, cols)}, make([]uint64, 2)))
			most := 8
			for cols%most > 0 {
				most /= 2
			}
			require.Equal(t, most, int(g.MaxBeside), "%v of %d columns", of0, cols)
			tried := map[uint8]bool{}
			for _, s := range p.Schedules(&g)[1:] {
				if s.Turned {
					tried[s.Beside] = true
				}
			}
			want := map[uint8]bool{}
			for _, beside := range sizes { // of 4, 8 and 16 bytes, or of one element
				if int(beside) <= most && (beside == 1 || cols >= 32*int(beside)) {
					want[beside] = true
				}
			}
			if most < int(sizes[len(sizes)-1]) && (most == 1 || cols >= 32*most) { // of fewer bytes, where no more are aligned
				want[uint8(most)] = true
			}
			require.Equal(t, want, tried, "%v of %d columns", of0, cols)
		}
	}
}

// A thread loads any number of elements of its rows at once.
func TestColumnsOfAnyNumberAtOnce(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	p := program(t, []int{-2}, x.Sum(), x.ArgMax())
	const rows, cols = 101, 40
	for repeat := uint8(1); repeat <= 7; repeat++ {
		m := newMemory()
		in := m.array(tensor.Float32, of(t, rows, cols), 0).fill(func(i int) float64 { return float64(i * 7919 % 257) })
		sum, arg := m.array(tensor.Float32, of(t, cols), 0), m.array(tensor.Int64, of(t, cols), 0)
		addresses := []uint64{in.at, sum.at, arg.at}
		var g plan.Geometry
		require.NoError(t, p.Fit(&g, []layout.Layout{in.layout, sum.layout, arg.layout}, addresses))
		g.Apply(plan.Schedule{Lanes: 8, Block: 256, Vector: 1, Repeat: repeat, Turned: true, Beside: 1})
		launch(t, p, m, &g, addresses)
		want := columnsOf(in.values(), rows, cols)
		assert.Equal(t, want.sum, sum.values(), repeat)
		assert.Equal(t, want.arg, arg.values(), repeat)
	}
}
