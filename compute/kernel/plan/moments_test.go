package plan_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
)

// momentRows are rows whose moments are hard to compute: large and equal elements, a mean far from 0, and a first element far
// from the mean.
func momentRows() []func(i int) float64 {
	noise := func(i int) float64 { return float64((i*7919)%101)/50 - 1 }
	return []func(i int) float64{
		func(int) float64 { return math.MaxFloat32 },
		func(int) float64 { return -math.MaxFloat32 },
		func(int) float64 { return float64(float32(0.1)) },
		func(i int) float64 { return float64(float32(1e4 + noise(i))) },
		func(i int) float64 {
			if i == 0 {
				return 1e5
			}
			return float64(float32(noise(i)))
		},
		func(i int) float64 { return float64(float32(1e4 + noise(i)/50)) },
		func(i int) float64 { return 0x1p-140 * float64(i%3) },
	}
}

// momentsOf are mean and variance, in float64.
func momentsOf(row func(int) float64, n int) (mean, variance float64) {
	for i := range n {
		mean += row(i) / float64(n)
	}
	for i := range n {
		d := row(i) - mean
		variance += d * d / float64(n)
	}
	return mean, variance
}

// The mean and the variance of equal elements are exact, in every schedule, also where their sum is infinite. For other
// elements they are the nearest float32.
func TestMomentsOfHardRows(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	mean, variance := x.Moments(0)
	rows := momentRows()
	for _, n := range []int{1, 3, 40, 520, 4101} {
		for _, turned := range []bool{false, true} {
			c := scheduled{axes: []int{-1}, of: []expr.Expr{mean, variance, x.LayerNorm(1e-12)}, turned: turned}
			c.shapes = [][]int{{len(rows), n}, {len(rows), 1}, {len(rows), 1}, {len(rows), n}}
			if turned {
				c.shapes[0] = []int{n, len(rows)}
			}
			p, m, arrays, g, addresses := c.operands(t)
			arrays[0].fill(func(at int) float64 { return rows[at/n](at % n) })
			for _, s := range p.Schedules(&g) {
				tried := g
				tried.Apply(s)
				for _, out := range arrays[1:] {
					out.fill(func(int) float64 { return math.NaN() })
				}
				launch(t, p, m, &tried, addresses)
				means, variances, norms := arrays[1].values(), arrays[2].values(), arrays[3].values()
				for i, row := range rows {
					about := fmt.Sprint("row ", i, " of ", n, ", turned ", turned, ", ", s)
					mean, variance := momentsOf(row, n)
					if i < 3 || n == 1 { // equal elements
						require.InDelta(t, row(0), means[i], 0, about)
						require.InDelta(t, 0, variances[i], 0, about)
						require.InDelta(t, 0, norms[i*n+n-1], 0, about)
						continue
					}
					require.InDelta(t, mean, means[i], 1e-5*math.Abs(mean)+0x1p-148, about)
					require.InDelta(t, variance, variances[i], 3e-5*variance+0x1p-148, about)
					for at := range n {
						want := (row(at) - mean) / math.Sqrt(variance+1e-12)
						require.InDelta(t, want, norms[i*n+at], 3e-5*(1+math.Abs(want)), about)
					}
				}
			}
		}
	}
}

// A row without elements has no mean, and nothing is read of it.
func TestMomentsOfNothing(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	mean, variance := x.Moments(0)
	c := scheduled{axes: []int{-1}, of: []expr.Expr{mean, variance}, shapes: [][]int{{3, 0}, {3, 1}, {3, 1}}}
	p, m, arrays, g, addresses := c.operands(t)
	launch(t, p, m, &g, addresses)
	for _, out := range arrays[1:] {
		for _, v := range out.values() {
			require.True(t, math.IsNaN(v), "%v", v)
		}
	}
}
