package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// transposed is a view of so many rows and columns that lies in memory as columns.
func transposed(t *testing.T, shape ...int) layout.Layout {
	t.Helper()
	last := len(shape) - 1
	back := append([]int{}, shape...)
	back[last-1], back[last] = back[last], back[last-1]
	l, err := of(t, back...).Transpose(last-1, last)
	require.NoError(t, err)
	return l
}

// counted are small numbers that every element type has, different for neighbours in each direction.
func counted(i int) float64 { return float64(i*i%97 + i%29) }

// tiledRun executes a program whose tiles have a side.
func tiledRun(t *testing.T, p *plan.Program, m *memory, side uint8, wide bool, arrays ...*array) {
	t.Helper()
	layouts, addresses := make([]layout.Layout, len(arrays)), make([]uint64, len(arrays))
	for i, a := range arrays {
		layouts[i], addresses[i] = a.layout, a.at
	}
	var g plan.Geometry
	require.NoError(t, p.Fit(&g, layouts, addresses))
	require.NotZero(t, g.Tile)
	g.Tile, g.Wide = side, wide
	launch(t, p, m, &g, addresses)
}

// Transposed copies are right for elements of each size, whole tiles and parts of them, in any number of dimensions.
func TestTransposedCopies(t *testing.T) {
	for _, shape := range [][]int{{32, 32}, {64, 64}, {16, 16}, {40, 70}, {129, 33}, {3, 20, 40}, {2, 2, 33, 17}} {
		for i, of0 := range tensor.Types() {
			for _, side := range []uint8{32, 64} {
				m := newMemory()
				from := m.array(of0, transposed(t, shape...), i%2).fill(counted)
				to := m.array(of0, of(t, shape...), 0)
				tiledRun(t, program(t, nil, expr.Input(0, of0)), m, side, i%3 == 0, from, to)
				require.Equal(t, from.values(), to.values(), "%v of %v, tiles of %d", shape, of0, side)
			}
		}
	}
}

// An input whose neighbours are along any dimension but the last one is read by tiles, and right: other dimensions may lie between
// the two, in either order.
func TestTilesAcrossAnyDimension(t *testing.T) {
	p := program(t, nil, expr.Input(0, tensor.Int32).Neg())
	for _, shape := range [][]int{{17, 3, 20}, {3, 18, 20}, {17, 2, 3, 40}, {33, 18, 35}, {2, 17, 3, 19}} {
		last := len(shape) - 1
		for across := range last {
			if shape[across] < 16 {
				continue
			}
			for _, upwards := range []bool{true, false} {
				order := []int{across} // of dimensions, the one with the nearest neighbours first
				for n := range last + 1 {
					d := last - n
					if upwards {
						d = n
					}
					if d != across {
						order = append(order, d)
					}
				}
				l := ordered(t, shape, order)
				for _, side := range []uint8{32, 64} {
					m := newMemory()
					from, to := m.array(tensor.Int32, l, 0).fill(counted), m.array(tensor.Int32, of(t, shape...), 0)
					tiledRun(t, p, m, side, false, from, to)
					for i, v := range from.values() {
						require.Equal(t, -v, to.get(i), "%v in the order %v, element %d", shape, order, i)
					}
				}
			}
		}
	}
}

// ordered is a layout whose dimensions lie in memory in an order, the one with the nearest neighbours first.
func ordered(t *testing.T, shape, order []int) layout.Layout {
	t.Helper()
	strides, next := make([]int, len(shape)), 1
	for _, d := range order {
		strides[d] = next
		next *= shape[d]
	}
	l, err := layout.New(shape, strides, 0)
	require.NoError(t, err)
	return l
}

// A tile is one operand of an expression whose others are laid out as the output, broadcast, or strided.
func TestTilesInExpressions(t *testing.T) {
	const rows, cols = 70, 45
	f := func(i int) expr.Expr { return expr.Input(i, tensor.Float32) }
	p := program(t, nil, f(0).Mul(f(1)).Add(f(2)), f(3).Sub(f(4)).Cast(tensor.Float64))
	for _, side := range []uint8{32, 64} {
		m := newMemory()
		strided, err := of(t, rows, 2*cols).Slice(1, 0, 2*cols, 2)
		require.NoError(t, err)
		arrays := []*array{
			m.array(tensor.Float32, transposed(t, rows, cols), 1).fill(normal(1)), m.array(tensor.Float32, of(t, rows, cols), 0).fill(normal(2)),
			m.array(tensor.Float32, of(t, cols), 0).fill(normal(3)), m.array(tensor.Float32, transposed(t, rows, cols), 0).fill(normal(4)),
			m.array(tensor.Float32, strided, 0).fill(normal(5)),
			m.array(tensor.Float32, of(t, rows, cols), 0), m.array(tensor.Float64, of(t, rows, cols), 0),
		}
		tiledRun(t, p, m, side, false, arrays...)
		var v [7][]float64
		for i, a := range arrays {
			v[i] = a.values()
		}
		for i := range rows * cols {
			require.InDelta(t, v[0][i]*v[1][i]+v[2][i%cols], v[5][i], 1e-5, "element %d", i)
			require.InDelta(t, v[3][i]-v[4][i], v[6][i], 1e-6, "element %d", i)
		}
	}
}

// Which kernels have tiles, and of which side.
func TestWhichKernelsHaveTiles(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	channelsLast, err := of(t, 16, 30, 50, 64).Permute(0, 3, 1, 2)
	require.NoError(t, err)
	apart, err := of(t, 64, 2*64).Slice(1, 0, 2*64, 2)
	require.NoError(t, err)
	apart, err = apart.Transpose(0, 1)
	require.NoError(t, err)
	doubles := expr.Input(0, tensor.Float64)
	for name, c := range map[string]struct {
		of   expr.Expr
		from layout.Layout
		side uint8
	}{
		"a matrix":                  {x, transposed(t, 100, 100), 32},
		"a large matrix":            {x, transposed(t, 4096, 4096), 64},
		"a large matrix of doubles": {doubles, transposed(t, 4096, 4096), 32},
		"matrices":                  {x, transposed(t, 8, 100, 100), 32},
		"channels last":             {x, channelsLast, 64},
		"contiguous":                {x, of(t, 100, 100), 0},
		"few columns":               {x, transposed(t, 100, 8), 0},
		"few rows":                  {x, transposed(t, 8, 100), 0},
		"elements that are apart":   {x, apart, 0},
		"indices of elements":       {x.Add(expr.Index(-1).Cast(tensor.Float32)), transposed(t, 100, 100), 0},
	} {
		p := program(t, nil, c.of)
		var g plan.Geometry
		require.NoError(t, p.Fit(&g, []layout.Layout{c.from, of(t, c.from.Shape()...)}, make([]uint64, 2)))
		assert.Equal(t, c.side, g.Tile, name)
	}

	// As many inputs as shared memory has room for; with one more they are read as before.
	for count, side := range map[int]uint8{1: 32, 5: 32, 6: 0} {
		sum, layouts := doubles, []layout.Layout{}
		for i := range count {
			if i > 0 {
				sum = sum.Add(expr.Input(i, tensor.Float64))
			}
			layouts = append(layouts, transposed(t, 64, 64))
		}
		p := program(t, nil, sum)
		var g plan.Geometry
		require.NoError(t, p.Fit(&g, append(layouts, of(t, 64, 64)), make([]uint64, count+1)))
		assert.Equal(t, side, g.Tile, "%d inputs", count)
	}
}

// A warp that reads across the lines of a tile meets each of the 32 banks once; of elements of 8 bytes half a warp does.
func TestTilesHaveNoBankConflicts(t *testing.T) {
	for _, side := range []int{32, 64} {
		for _, size := range []int{1, 2, 4, 8} {
			t.Run(fmt.Sprintf("side=%d/bytes=%d", side, size), func(t *testing.T) {
				lanes := 32 * 4 / max(size, 4)
				for row := range side {
					banks := map[int]int{} // the word that is read of each
					for lane := range lanes {
						at := lane*plan.TilePitch(side, size) + row*size
						assert.Zero(t, at%size, "aligned")
						for word := at / 4; word <= (at+size-1)/4; word++ {
							before, met := banks[word%32]
							assert.True(t, !met || before == word, "row %d, lane %d", row, lane)
							banks[word%32] = word
						}
					}
				}
			})
		}
	}
}
