package ops_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// The norm of gradients of many shapes, layouts and types equals the reference, and clips.
func TestGradNorm(t *testing.T) {
	r := newRig(t)
	const block = routine.SquareBlockLen
	shapes := [][]int{{}, {0}, {1}, {7}, {8}, {9}, {block - 1}, {block + 1}, {2*block + 3}, {5, 7}}
	for range routine.SquareSlots + 5 {
		shapes = append(shapes, []int{1 + r.random.IntN(20)})
	}
	var grads []*tensor.Tensor
	squares := 0.0
	for i, shape := range shapes {
		a := newArray(shape, r.random.NormFloat64)
		grads = append(grads, r.of([]tensor.Type{tensor.BFloat16, tensor.BFloat16, tensor.Float32, tensor.Float16}[i%4], a))
		for _, x := range a.values {
			squares += x * x
		}
	}
	want := math.Sqrt(squares)
	for i, most := range []float64{1, 2 * want, 0, math.Inf(1)} {
		norm, scale, nonFinite, err := r.o.GradNorm(r.s, grads, most)
		require.NoError(t, err)
		r.near([]float64{want}, norm, 1e-6, 0)
		r.near([]float64{min(1, most/(want+1e-6))}, scale, 1e-6, 0, most)
		r.near([]float64{0}, nonFinite, 0, 0)
		if i > 0 && testing.Short() {
			continue
		}
		again, _, _, err := r.o.GradNorm(r.s, grads, most)
		require.NoError(t, err)
		require.Equal(t, r.read(norm).values, r.read(again).values, "the same bits")
	}
	norm, scale, nonFinite, err := r.o.GradNorm(r.s, nil, 1)
	require.NoError(t, err)
	r.near([]float64{0}, norm, 0, 0, "of no gradients")
	r.near([]float64{1}, scale, 0, 0)
	r.near([]float64{0}, nonFinite, 0, 0)
}

// Gradients that fill launches exactly, or are one more or less, all count.
func TestGradNormOfFullLaunches(t *testing.T) {
	r := newRig(t)
	a := newArray([]int{2*routine.SquareSlots + 1}, r.random.NormFloat64)
	whole := r.contiguousOf(tensor.Float32, a)
	var grads []*tensor.Tensor
	squares := []float64{0}
	for i, x := range a.values {
		one, err := whole.Narrow(0, i, 1)
		require.NoError(t, err)
		grads, squares = append(grads, one), append(squares, squares[i]+x*x)
	}
	for _, n := range []int{routine.SquareSlots - 1, routine.SquareSlots, routine.SquareSlots + 1, 2 * routine.SquareSlots, 2*routine.SquareSlots + 1} {
		norm, _, _, err := r.o.GradNorm(r.s, grads[:n], 1)
		require.NoError(t, err)
		r.near([]float64{math.Sqrt(squares[n])}, norm, 1e-6, 0, n)
	}
}

// Gradients of 2^31-1 blocks are refused for their memory alone, and of one block more for their number.
func TestGradNormOfTooManyBlocks(t *testing.T) {
	r := newRig(t)
	for _, more := range []int{-1, 0, 1} {
		g, err := r.zeros().Broadcast((math.MaxInt32 + more) * routine.SquareBlockLen)
		require.NoError(t, err)
		_, _, _, err = r.o.GradNorm(r.s, []*tensor.Tensor{g}, 1)
		require.Error(t, err)
		require.Equal(t, more > 0, errors.Is(err, tensor.ErrTooLarge), "%d more: %v", more, err)
	}
}

// One gradient that is infinite or NaN, or whose square is, makes the flag, in each part of a block.
func TestGradNormThatIsNotFinite(t *testing.T) {
	r := newRig(t)
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct{ value, norm, scale float64 }{{inf, inf, 0}, {-inf, inf, 0}, {nan, nan, nan}, {1e30, inf, 0}} {
		for _, at := range []int{0, 9, 1030} {
			a := newArray([]int{1031}, func() float64 { return 1 })
			a.values[at] = c.value
			norm, scale, nonFinite, err := r.o.GradNorm(r.s, []*tensor.Tensor{r.zeros(3), r.contiguousOf(tensor.Float32, a)}, 1)
			require.NoError(t, err)
			r.near([]float64{c.norm}, norm, 0, 0)
			r.near([]float64{c.scale}, scale, 0, 0)
			r.near([]float64{1}, nonFinite, 0, 0, c.value, at)
		}
	}
}

// A captured step clips by the norm of its launch, counts on the device, and changes nothing while a gradient is not finite.
func TestClippedStepsInAGraph(t *testing.T) {
	r := newRig(t)
	x := r.trained(tensor.Float32, []int{33, 5}, contiguous)
	x.state.Copy = r.made(tensor.BFloat16, 33, 5)
	norm, scale, nonFinite := r.zeros(), r.zeros(), r.made(tensor.Bool)
	step, counted := r.zeros(1), r.made(tensor.Bool)
	c := ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01}
	grads, states := []*tensor.Tensor{x.state.Grad}, []ops.AdamWState{x.state}
	work := func() error {
		if err := r.o.GradNormInto(r.c, norm, scale, nonFinite, grads, 1); err != nil {
			return err
		}
		if err := r.o.EqInto(r.c, counted, norm, norm); err != nil { // NaN is not
			return err
		}
		if err := r.o.AddInto(r.c, step, step, counted); err != nil {
			return err
		}
		return r.o.AdamWAll(r.c, states, ops.AdamWStep{Rate: 0.02, StepAt: step, ScaleAt: scale, SkipAt: nonFinite}, c)
	}
	require.NoError(t, work())
	g, err := r.c.Capture(work)
	require.NoError(t, err)
	good := array{x.g.shape, append([]float64(nil), x.g.values...)}
	clipped := func() {
		squares := 0.0
		for _, v := range good.values {
			squares += v * v
		}
		for i := range x.g.values {
			x.g.values[i] = good.values[i] * min(1, 1/(math.Sqrt(squares)+1e-6))
		}
	}
	clipped()
	for n := 1; n <= 3; n++ {
		x.step(n, 0.02, c)
		if n > 1 {
			require.NoError(t, g.Launch(r.c))
		}
		r.near(x.p.values, x.state.Param, 1e-5, 1e-1, n)
	}
	bad := array{x.g.shape, append([]float64(nil), good.values...)}
	bad.values[100] = math.NaN()
	require.NoError(t, r.o.CopyInto(r.s, x.state.Grad, r.tensor(bad)))
	require.NoError(t, g.Launch(r.c))
	r.near(x.p.values, x.state.Param, 1e-5, 1e-1, "skipped")
	r.near([]float64{3}, step, 0, 0, "and not counted")
	require.NoError(t, r.o.CopyInto(r.s, x.state.Grad, r.tensor(good)))
	require.NoError(t, g.Launch(r.c))
	x.step(4, 0.02, c)
	r.near(x.p.values, x.state.Param, 1e-5, 1e-1, "trains on")
	require.NoError(t, g.Close())
}

// A gradient that repeats elements counts each of them as often, also where it has as many elements as places.
func TestGradNormOfRepeatedElements(t *testing.T) {
	r := newRig(t)
	x := r.contiguousOf(tensor.Float32, array{[]int{6}, []float64{1, 100, 100, 100, 100, 2}})
	l, err := layout.New([]int{3, 2}, []int{0, 5}, 0)
	require.NoError(t, err)
	b, err := x.Buffer()
	require.NoError(t, err)
	repeated, err := tensor.Over(r.s, b, tensor.Float32, l)
	require.NoError(t, err)
	norm := r.zeros()
	require.NoError(t, r.o.GradNormInto(r.s, norm, nil, nil, []*tensor.Tensor{repeated}, 1))
	r.near([]float64{math.Sqrt(15)}, norm, 1e-6, 1)
}

func TestMistakesOfGradNorm(t *testing.T) {
	r := newRig(t)
	x := r.zeros(3)
	run := func(norm, scale, nonFinite *tensor.Tensor, most float64, grads ...*tensor.Tensor) error {
		return r.o.GradNormInto(r.s, norm, scale, nonFinite, grads, most)
	}
	var types *tensor.TypeError
	require.ErrorIs(t, run(nil, nil, nil, -1, x), ops.ErrNumber)
	require.ErrorIs(t, run(nil, nil, nil, math.NaN(), x), ops.ErrNumber)
	require.ErrorIs(t, run(nil, nil, nil, 1, x, nil), tensor.ErrNoTensor)
	require.ErrorAs(t, run(nil, nil, nil, 1, r.made(tensor.Float64, 3)), &types)
	require.ErrorAs(t, run(nil, nil, nil, 1, x, r.made(tensor.Float64, 3)), &types, "each gradient")
	require.ErrorAs(t, run(r.made(tensor.Float64), nil, nil, 1, x), &types)
	require.ErrorAs(t, run(nil, nil, r.zeros(), 1, x), &types)
	require.ErrorIs(t, run(r.zeros(2), nil, nil, 1, x), ops.ErrShape)
	part := r.narrowed(x, 1)
	require.ErrorIs(t, run(part, nil, nil, 1, x), kernel.ErrOverlap)
	require.ErrorIs(t, run(part, part, nil, 1), kernel.ErrOverlap)
}
