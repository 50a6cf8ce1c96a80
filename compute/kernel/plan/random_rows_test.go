package plan_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

func TestRandomReductionsOfRandomLayouts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkRows(t) })
}

// checkRows reduces whole numbers, whose sums are exact, over random axes.
func checkRows(t *rapid.T) {
	kinds := []tensor.Type{tensor.Float32, tensor.Float64, tensor.Int64, tensor.Int32, tensor.Uint8, tensor.BFloat16}
	kind := rapid.SampledFrom(kinds).Draw(t, "type")
	shape := rapid.SampledFrom([][]int{
		{1}, {5}, {3, 4}, {4, 3}, {2, 65}, {17, 8}, {2, 3, 4}, {3, 0}, {0, 3}, {2, 1100}, {2, 9000}, {8, 2, 16}, {1, 33000}, {2100, 2}, {2, 2100}, {70, 70}, {3, 65, 40},
	}).Draw(t, "shape")
	var axes []int
	for d := range shape {
		if rapid.Bool().Draw(t, "axis") {
			axes = append(axes, d-len(shape))
		}
	}
	if axes == nil {
		axes = []int{-1}
	}
	x := expr.Input(0, kind)
	p, err := plan.New(axes, x.Sum(), x.Max(), x.ArgMax(), x.ArgMin(), x.Sub(x.Min()))
	require.NoError(t, err)
	m := newMemory()
	in := m.array(kind, drawLayout(t, shape, true), rapid.IntRange(0, 1).Draw(t, "skip"))
	seed := rapid.Uint32().Draw(t, "seed")
	nan := rapid.IntRange(-1, 20).Draw(t, "nan")
	next := seed
	in.fill(func(i int) float64 {
		next = next*1664525 + 1013904223
		if i == nan && kind.Kind() == tensor.Floating {
			return math.NaN()
		}
		return float64(next >> 24 % 16)
	})
	var rows, kept []int
	for d, n := range shape {
		reduced := false
		for _, a := range axes {
			reduced = reduced || a == d-len(shape)
		}
		if reduced {
			kept = append(kept, 1)
		} else {
			rows, kept = append(rows, n), append(kept, n)
		}
	}
	if rapid.Bool().Draw(t, "kept") {
		rows = kept
	}
	outs := []*array{in}
	for i, e := range []expr.Expr{x.Sum(), x.Max(), x.ArgMax(), x.ArgMin(), x.Sub(x.Min())} {
		of := rows
		if i == 4 {
			of = shape
		}
		outs = append(outs, m.array(e.Type, drawLayout(t, of, true), 0))
	}
	run(t, p, m, outs...)
	values := in.values()
	found := make([][]float64, 0, 5)
	for _, a := range outs[1:] {
		found = append(found, a.values())
	}
	compareRows(t, kind, shape, kept, values, found)
}

// compareRows computes the rows one by one.
func compareRows(t *rapid.T, kind tensor.Type, shape, kept []int, values []float64, found [][]float64) {
	type row struct {
		sum, high, low float64
		high1, low1    int
		count          int
	}
	count := 1
	for _, n := range kept {
		count *= n
	}
	all := make([]row, count)
	rowOf := func(i int) int {
		at, step := 0, 1
		for d, n := range slices.Backward(shape) {
			if kept[d] > 1 {
				at += i % n * step
			}
			step *= kept[d]
			i /= n
		}
		return at
	}
	for i, v := range values {
		r := &all[rowOf(i)]
		r.sum += v
		if r.count == 0 || v > r.high || v != v && r.high == r.high {
			r.high, r.high1 = v, r.count
		}
		if r.count == 0 || v < r.low || v != v && r.low == r.low {
			r.low, r.low1 = v, r.count
		}
		r.count++
	}
	same := func(what string, i int, want, got float64) {
		if want != got && (want == want || got == got) {
			t.Fatalf("%s %d: %v, not %v", what, i, got, want)
		}
	}
	for i, r := range all {
		if r.count == 0 {
			same("sum", i, 0, found[0][i])
			continue
		}
		if kind == tensor.BFloat16 {
			r.sum = float64(half.NewBFloat16(float32(r.sum)).Float32())
		}
		same("sum", i, r.sum, found[0][i])
		same("max", i, r.high, found[1][i])
		same("argmax", i, float64(r.high1), found[2][i])
		same("argmin", i, float64(r.low1), found[3][i])
	}
	for i, v := range values {
		same("difference", i, v-all[rowOf(i)].low, found[4][i])
	}
}
