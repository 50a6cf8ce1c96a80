package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// lossCase is a gradient of losses on the host.
type lossCase struct {
	logits  array
	targets []int64
	how     ops.LossGradient
	scaleAt float64 // 0: none
	ignored *int64
}

// reference returns the gradient, the losses of rows and the loss, in float64.
func (c *lossCase) reference() (gradient, losses []float64, loss float64) {
	factor, count := 1.0, 0
	for _, target := range c.targets {
		if c.ignored == nil || target != *c.ignored {
			count++
		}
	}
	if c.how.Mean {
		factor /= float64(count)
	}
	scale := factor
	for _, x := range []float64{c.how.Scale, c.scaleAt} {
		if x != 0 {
			scale *= x
		}
	}
	for i, row := range c.logits.rows([]int{len(c.logits.shape) - 1}) {
		target := c.targets[i]
		if c.ignored != nil && target == *c.ignored {
			losses = append(losses, 0)
			gradient = append(gradient, make([]float64, len(row))...)
			continue
		}
		top := slices.Max(row)
		total := logSumExp(mapped(row, func(x float64) float64 { return x - top }))
		of := math.NaN()
		if target >= 0 && target < int64(len(row)) {
			of = total - (row[target] - top)
		}
		losses = append(losses, of)
		for j, x := range row {
			g := scale * (math.Exp(x-top-total) - truth(int64(j) == target))
			if math.IsNaN(of) {
				g = math.NaN()
			}
			gradient = append(gradient, g)
		}
	}
	for _, x := range losses {
		loss += x
	}
	return gradient, losses, loss * factor
}

// tolerance is the relative error of a type.
func tolerance(of tensor.Type) float64 {
	return map[tensor.Type]float64{tensor.Float16: 1.0 / 2048, tensor.BFloat16: 1.0 / 256, tensor.Float32: 4e-6}[of] * 1.01
}

// indicesOf is a tensor of these indices.
func (r *rig) indicesOf(of tensor.Type, all []int64, shape ...int) *tensor.Tensor {
	r.Helper()
	wide, err := tensor.From(r.s, all, shape...)
	require.NoError(r, err)
	t := r.view(of, shape)
	require.NoError(r, r.o.CopyInto(r.s, t, wide))
	return t
}

// The gradient over logits, the losses of rows and their sum or mean equal the reference: of rows that are less than a vector,
// around one, around the vectors of a warp, of all blocks, and of one that no block keeps; in each layout.
func TestCrossEntropyGradient(t *testing.T) {
	r := newRig(t)
	types := []tensor.Type{tensor.BFloat16, tensor.Float16, tensor.Float32}
	for i, columns := range []int{1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 127, 255, 257, 509, 1021, 4099, 8209, 50_021} {
		of := types[i%len(types)]
		shape := []int{2 + i%3, columns}
		if i%4 == 3 {
			shape = []int{2, 2, columns}
		}
		if columns > 2000 {
			shape = []int{2, columns}
		}
		c := lossCase{logits: newArray(shape, func() float64 { return 3 * r.random.NormFloat64() }), how: ops.LossGradient{Mean: i%2 == 0}}
		for range count(shape) / columns {
			c.targets = append(c.targets, int64(r.random.IntN(columns)))
		}
		if i%3 == 1 {
			c.ignored = new(int64)
			*c.ignored = c.targets[0]
		}
		if i%2 == 1 {
			c.how.Scale = 0.5
		}
		var options []ops.LossOption
		if c.ignored != nil {
			options = append(options, ops.Ignored(*c.ignored))
		}
		if i%4 == 2 {
			c.scaleAt = -3
			var err error
			c.how.ScaleAt, err = r.o.Fill(r.s, tensor.Float32, c.scaleAt, 1)
			require.NoError(t, err)
		}
		logits := r.of(of, c.logits)
		targets := r.indicesOf([]tensor.Type{tensor.Int64, tensor.Int32}[i%2], c.targets, shape[:len(shape)-1]...)
		loss, losses, err := r.o.CrossEntropyGradient(r.s, logits, targets, c.how, options...)
		require.NoError(t, err)
		gradient, each, total := c.reference()
		scale, smallest := 1.0/float64(columns), 0.0
		if of == tensor.Float16 {
			smallest = 0x1p-14 // the least normal number
		}
		r.near(gradient, logits, tolerance(of), max(scale*1e-3, smallest), "gradient", of, shape)
		r.near(each, losses, 4e-6, 1, "losses", of, shape)
		r.near([]float64{total}, loss, 4e-6, float64(len(each)), "loss", of, shape)
		if i%5 == 2 {
			ops.Widen(r.o)
		}
	}
}

// Special numbers are the same as PyTorch's.
func TestCrossEntropyGradientOfSpecialNumbers(t *testing.T) {
	r := newRig(t)
	inf, nan := math.Inf(1), math.NaN()
	for _, of := range []tensor.Type{tensor.BFloat16, tensor.Float16, tensor.Float32} {
		rows := [][]float64{
			{1, nan, 2}, {1, inf, 2}, {-inf, -inf, -inf}, {-inf, 0, 0}, {-inf, 0, 0}, {nan, inf, 1}, {1, 2, 3}, {1, 2, 3}, {60000, 50000, -60000},
		}
		targets := []int64{0, 0, 0, 1, 0, 7, 3, -1, 0}
		const width = 20 // a vector and more
		a := array{shape: []int{len(rows), width}}
		for _, row := range rows {
			for j := range width {
				a.values = append(a.values, append(slices.Clone(row), -inf)[min(j, 3)])
			}
		}
		logits := r.of(of, a)
		loss, losses, err := r.o.CrossEntropyGradient(r.s, logits, r.indicesOf(tensor.Int64, targets, len(rows)), ops.LossGradient{}, ops.Ignored(7))
		require.NoError(t, err)
		want := []float64{nan, nan, nan, math.Log(2), inf, 0, inf, nan, 0}
		r.near(want, losses, 1e-5, 1e-3, of)
		r.near([]float64{nan}, loss, 0, 0)
		got := r.read(logits).values
		for j := range width {
			for _, row := range []int{0, 1, 2, 7} {
				require.True(t, math.IsNaN(got[row*width+j]), "%v row %d column %d is %v", of, row, j, got[row*width+j])
			}
			require.Zero(t, got[5*width+j], "an ignored row has no gradient, with NaN too")
		}
		require.InDeltaSlice(t, []float64{0, -0.5, 0.5, 0}, got[3*width:3*width+4], 1e-2)
		require.InDeltaSlice(t, []float64{-1, 0.5, 0.5, 0}, got[4*width:4*width+4], 1e-2)
	}
	one := func() *tensor.Tensor { return r.tensor(array{[]int{1, 3}, []float64{1, 2, 3}}) }
	for _, scale := range []float64{inf, nan} { // a factor that is not finite
		at, err := r.o.Fill(r.s, tensor.Float32, scale)
		require.NoError(t, err)
		x := one()
		_, _, err = r.o.CrossEntropyGradient(r.s, x, r.indicesOf(tensor.Int64, []int64{1}, 1), ops.LossGradient{ScaleAt: at})
		require.NoError(t, err)
		for _, g := range r.read(x).values {
			require.True(t, math.IsNaN(g) || math.IsInf(g, 0), g)
		}
	}
	none, _, err := r.o.CrossEntropyGradient(r.s, one(), r.indicesOf(tensor.Int64, []int64{1}, 1), ops.LossGradient{Mean: true}, ops.Ignored(1))
	require.NoError(t, err)
	r.near([]float64{nan}, none, 0, 0, "the mean of none")
	for _, shape := range [][]int{{0}, {2, 0}} {
		for _, options := range [][]ops.LossOption{nil, {ops.Ignored(1)}} {
			for mean, want := range map[bool]float64{false: 0, true: nan} {
				empty, losses, err := r.o.CrossEntropyGradient(
					r.s, r.zeros(append(slices.Clone(shape), 3)...), r.made(tensor.Int64, shape...), ops.LossGradient{Mean: mean}, options...)
				require.NoError(t, err)
				r.near([]float64{want}, empty, 0, 0, "no rows, mean ", mean, options)
				require.Equal(t, shape, losses.Shape())
			}
		}
	}
}

// The gradient is the derivative of the loss, by differences.
func TestCrossEntropyGradientByDifferences(t *testing.T) {
	r := newRig(t)
	a := newArray([]int{3, 17}, r.random.NormFloat64)
	targets := []int64{4, 2, 16}
	ignored := int64(2)
	c := lossCase{logits: a, targets: targets, how: ops.LossGradient{Mean: true}, ignored: &ignored}
	want := changes(func(x []float64) []float64 {
		moved := c
		moved.logits = array{a.shape, x}
		_, _, loss := moved.reference()
		return []float64{loss}
	}, a.values, []float64{1})
	logits := r.tensor(a)
	require.NoError(t, r.o.CrossEntropyGradientInto(r.s, nil, nil, logits, r.indicesOf(tensor.Int64, targets, 3), c.how, ops.Ignored(ignored)))
	r.near(want, logits, 1e-4, 1e-3)
}

// A repeated gradient has the same bits, and a graph computes it from the logits of each launch.
func TestCrossEntropyGradientRepeats(t *testing.T) {
	r := newRig(t)
	a := newArray([]int{5, 1203}, r.random.NormFloat64)
	first := r.of(tensor.BFloat16, a)
	logits, err := tensor.New(r.s, tensor.BFloat16, 5, 1203)
	require.NoError(t, err)
	targets := r.indicesOf(tensor.Int64, []int64{0, 1, 9, 3, 1202}, 5)
	loss, losses := r.zeros(), r.zeros(5)
	work := func() error {
		if err := r.o.CopyInto(r.c, logits, first); err != nil {
			return err
		}
		return r.o.CrossEntropyGradientInto(r.c, loss, losses, logits, targets, ops.LossGradient{Mean: true}, ops.Ignored(9))
	}
	require.NoError(t, work())
	want := [][]float64{r.read(logits).values, r.read(losses).values, r.read(loss).values}
	g, err := r.c.Capture(work)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, r.o.FillInto(r.c, losses, 7))
		require.NoError(t, g.Launch(r.c))
		require.Equal(t, want, [][]float64{r.read(logits).values, r.read(losses).values, r.read(loss).values})
	}
	require.NoError(t, g.Close())
}

func TestMistakesOfCrossEntropyGradient(t *testing.T) {
	r := newRig(t)
	x, targets := r.zeros(4, 3), r.made(tensor.Int64, 4)
	run := func(loss, losses, logits, targets *tensor.Tensor, how ops.LossGradient) error {
		return r.o.CrossEntropyGradientInto(r.s, loss, losses, logits, targets, how)
	}
	part, err := x.Narrow(1, 0, 1)
	require.NoError(t, err)
	part, err = part.Reshape(4)
	require.NoError(t, err)
	repeated, err := r.zeros(1, 3).Broadcast(4, 3)
	require.NoError(t, err)
	none := ops.LossGradient{}
	var types *tensor.TypeError
	require.ErrorAs(t, run(nil, nil, r.made(tensor.Float64, 4, 3), targets, none), &types)
	require.ErrorAs(t, run(nil, nil, x, x, none), &types)
	require.ErrorAs(t, run(r.made(tensor.Float16), nil, x, targets, none), &types)
	require.ErrorIs(t, run(nil, nil, x, r.made(tensor.Int64, 3), none), ops.ErrShape)
	require.ErrorIs(t, run(nil, r.zeros(3), x, targets, none), ops.ErrShape)
	require.ErrorIs(t, run(r.zeros(2), nil, x, targets, none), ops.ErrShape)
	require.ErrorIs(t, run(nil, nil, r.zeros(4, 0), targets, none), ops.ErrEmpty)
	require.ErrorIs(t, run(nil, nil, x, targets, ops.LossGradient{Scale: math.Inf(1)}), ops.ErrNumber)
	require.ErrorIs(t, run(nil, nil, nil, targets, none), tensor.ErrNoTensor)
	require.ErrorIs(t, run(nil, nil, repeated, targets, none), kernel.ErrRepeats)
	require.ErrorIs(t, run(nil, part, x, targets, none), kernel.ErrOverlap)
	r.near(make([]float64, 12), x, 0, 0, "nothing was written")
}
