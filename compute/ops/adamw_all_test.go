package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// trained is a parameter with the reference of its steps.
type trained struct {
	state      ops.AdamWState
	p, g, m, v array
}

// layouts of the four tensors of a parameter.
const (
	contiguous = iota
	different
	gapped // in the same way
	turned // in the same way
)

// laid is a tensor with a layout.
func (r *rig) laid(of tensor.Type, shape []int, kind int) *tensor.Tensor {
	r.Helper()
	stored := slices.Clone(shape)
	if len(shape) < 2 || kind == contiguous {
		kind = contiguous
	} else if kind == gapped {
		stored[1] *= 2
	} else {
		stored[0], stored[1] = stored[1], stored[0]
	}
	t, err := tensor.New(r.s, of, stored...)
	require.NoError(r, err)
	switch kind {
	case gapped:
		t, err = t.Slice(1, 0, stored[1], 2)
	case turned:
		t, err = t.Transpose(0, 1)
	}
	require.NoError(r, err)
	return t
}

// trained is one with a layout.
func (r *rig) trained(param tensor.Type, shape []int, layouts int) *trained {
	r.Helper()
	zero := func() float64 { return 0 }
	x := &trained{p: newArray(shape, r.random.NormFloat64), g: newArray(shape, r.random.NormFloat64), m: newArray(shape, zero), v: newArray(shape, zero)}
	of := func(kind tensor.Type, a array) *tensor.Tensor {
		if layouts == different {
			return r.of(kind, a)
		}
		t := r.laid(kind, shape, layouts)
		require.NoError(r, r.o.CopyInto(r.s, t, r.tensor(a)))
		copy(a.values, r.read(t).values)
		return t
	}
	x.state = ops.AdamWState{Param: of(param, x.p), Grad: of(param, x.g), First: of(tensor.Float32, x.m), Second: of(tensor.Float32, x.v)}
	return x
}

func (x *trained) step(n int, rate float64, c ops.AdamWConfig) {
	for i, g := range x.g.values {
		p, m, v := &x.p.values[i], &x.m.values[i], &x.v.values[i]
		*m = c.Beta1**m + (1-c.Beta1)*g
		*v = c.Beta2**v + (1-c.Beta2)*g*g
		*p *= 1 - rate*c.Decay
		*p -= rate * *m / (1 - math.Pow(c.Beta1, float64(n))) / (math.Sqrt(*v/(1-math.Pow(c.Beta2, float64(n)))) + c.Epsilon)
	}
}

// Steps over tensors of many shapes, layouts and types equal the reference, with other numbers at each step.
func TestAdamWAll(t *testing.T) {
	r := newRig(t)
	var all []*trained
	var states []ops.AdamWState
	shapes := [][]int{{}, {0}, {1}, {3}, {4}, {routine.AdamWBlockLen}, {routine.AdamWBlockLen + 1}, {2*routine.AdamWBlockLen + 7}}
	for range routine.AdamWSlots + 11 {
		shapes = append(shapes, r.shape(1+r.random.IntN(3)))
	}
	for i, shape := range shapes {
		kind := tensor.Float32
		if i%16 == 3 {
			kind = tensor.BFloat16
		}
		x := r.trained(kind, shape, []int{contiguous, contiguous, different, contiguous, turned, contiguous, gapped, contiguous, contiguous}[i%9])
		all, states = append(all, x), append(states, x.state)
	}
	for n := 1; n <= 2; n++ {
		if n == 2 {
			ops.Widen(r.o)
		}
		rate := 0.01 * float64(n)
		c := ops.AdamWConfig{Beta1: 0.9, Beta2: 0.99 + 0.001*float64(n), Epsilon: 1e-8, Decay: 0.1 * float64(n)}
		require.NoError(t, r.o.AdamWAll(r.c, states, ops.AdamWStep{Rate: rate, Step: n}, c))
		for i, x := range all {
			x.step(n, rate, c)
			bound := 1e-5
			if x.state.Param.Type() == tensor.BFloat16 {
				bound = 1.0 / 256 * 1.01
			}
			r.near(x.p.values, x.state.Param, bound, 1e-2, i, x.p.shape)
			copy(x.p.values, r.read(x.state.Param).values)
			r.near(x.m.values, x.state.First, 1e-5, 1e-6, i)
			r.near(x.v.values, x.state.Second, 1e-5, 1e-9, i)
		}
	}
}

// A graph reads rate and step from memory, and makes the next step at each launch.
func TestAdamWAllInAGraph(t *testing.T) {
	r := newRig(t)
	x, y := r.trained(tensor.Float32, []int{33, 5}, contiguous), r.trained(tensor.Float32, []int{4, 7}, different)
	states := []ops.AdamWState{x.state, y.state}
	rate, err := r.o.Fill(r.s, tensor.Float32, 0.02)
	require.NoError(t, err)
	step, err := tensor.Zeros(r.s, tensor.Float32, 1)
	require.NoError(t, err)
	one, err := r.o.Fill(r.s, tensor.Float32, 1)
	require.NoError(t, err)
	c := ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01}
	work := func() error {
		if err := r.o.AddInto(r.c, step, step, one); err != nil {
			return err
		}
		return r.o.AdamWAll(r.c, states, ops.AdamWStep{RateAt: rate, StepAt: step}, c)
	}
	require.NoError(t, work())
	g, err := r.c.Capture(work)
	require.NoError(t, err)
	for range 4 {
		require.NoError(t, g.Launch(r.c))
	}
	for _, x := range []*trained{x, y} {
		for n := 1; n <= 5; n++ {
			x.step(n, 0.02, c)
		}
		r.near(x.p.values, x.state.Param, 1e-5, 1e-1)
	}
	require.NoError(t, g.Close())
}

// The copy of a parameter is the new one rounded, in each layout, gradients have the factor in memory, a state without a gradient
// stays as it is, and so do all where the step is skipped.
func TestAdamWAllCopiesScalesAndSkips(t *testing.T) {
	r := newRig(t)
	var all []*trained
	var states []ops.AdamWState
	for i, shape := range [][]int{{}, {40}, {3}, {routine.AdamWBlockLen + 5}, {7, 5}, {4, 9}, {6, 2}} {
		x := r.trained(tensor.Float32, shape, []int{contiguous, contiguous, contiguous, contiguous, different, turned, gapped}[i])
		if i != 2 { // which has none, among others that do
			x.state.Copy = r.laid([]tensor.Type{tensor.BFloat16, tensor.Float16}[i%2], shape, []int{contiguous, gapped, turned}[i%3])
		}
		all, states = append(all, x), append(states, x.state)
	}
	const none = 1 // between others of its types
	states[none].Grad = nil
	scale, err := r.o.Fill(r.s, tensor.Float32, 0.25)
	require.NoError(t, err)
	skip := r.made(tensor.Bool)
	c := ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01}
	require.NoError(t, r.o.FillInto(r.s, states[none].Copy, 7))
	require.NoError(t, r.o.AdamWAll(r.s, states, ops.AdamWStep{Rate: 0.1, Step: 1, ScaleAt: scale, SkipAt: skip}, c))
	for i, x := range all {
		if i == none {
			r.near([]float64{7, 7}, r.narrowed(x.state.Copy, 2), 0, 0, "no gradient")
			continue
		}
		for j := range x.g.values {
			x.g.values[j] *= 0.25
		}
		x.step(1, 0.1, c)
		r.near(x.p.values, x.state.Param, 1e-5, 1e-2, i)
		r.near(x.v.values, x.state.Second, 1e-5, 1e-9, i)
		if x.state.Copy != nil {
			want, err := r.o.Cast(r.s, x.state.Param, x.state.Copy.Type())
			require.NoError(t, err)
			require.Equal(t, r.read(want).values, r.read(x.state.Copy).values, i)
		}
	}
	r.near(all[none].p.values, all[none].state.Param, 0, 0, "no gradient")
	before := r.read(all[3].state.Param).values
	require.NoError(t, r.o.FillInto(r.s, skip, 1))
	require.NoError(t, r.o.AdamWAll(r.s, states, ops.AdamWStep{Rate: 0.1, Step: 2, SkipAt: skip}, c))
	require.Equal(t, before, r.read(all[3].state.Param).values)
	r.near(all[4].p.values, all[4].state.Param, 1e-5, 1e-2, "skipped where tensors lie apart")
}

// narrowed is the first elements of a tensor of one dimension.
func (r *rig) narrowed(t *tensor.Tensor, n int) *tensor.Tensor {
	r.Helper()
	part, err := t.Narrow(0, 0, n)
	require.NoError(r, err)
	return part
}

func TestMistakesOfAdamWAll(t *testing.T) {
	r := newRig(t)
	x, y := r.trained(tensor.Float32, []int{3, 2}, contiguous), r.trained(tensor.Float32, []int{2, 3}, contiguous)
	c := ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999}
	before := r.read(x.state.Param).values
	run := func(step ops.AdamWStep, c ops.AdamWConfig, change func(s *ops.AdamWState)) error {
		states := []ops.AdamWState{x.state, y.state}
		change(&states[1])
		return r.o.AdamWAll(r.s, states, step, c)
	}
	none := func(*ops.AdamWState) {}
	first := ops.AdamWStep{Rate: 0.1, Step: 1}
	err := run(ops.AdamWStep{Rate: 0.1}, c, none)
	require.ErrorIs(t, err, ops.ErrNumber)
	require.ErrorContains(t, err, "the step is 0, want 1 or more")
	err = run(first, ops.AdamWConfig{Beta1: 1, Beta2: 0.9}, none)
	require.ErrorIs(t, err, ops.ErrNumber)
	require.ErrorContains(t, err, "Beta1 is 1, want 0 or more and less than 1")
	require.ErrorIs(t, run(ops.AdamWStep{Step: 1, RateAt: x.state.Param}, c, none), ops.ErrShape)
	require.ErrorIs(t, run(first, c, func(s *ops.AdamWState) { s.Grad = x.state.Grad }), ops.ErrShape)
	require.ErrorIs(t, run(first, c, func(s *ops.AdamWState) { s.First = nil }), tensor.ErrNoTensor)
	require.ErrorIs(t, run(first, c, func(s *ops.AdamWState) { s.First = s.Second }), kernel.ErrOverlap)
	require.ErrorIs(t, run(first, c, func(s *ops.AdamWState) { s.Grad = s.Param }), kernel.ErrOverlap)
	require.ErrorIs(t, run(first, c, func(s *ops.AdamWState) { s.Copy = s.Param }), kernel.ErrOverlap)
	require.ErrorIs(t, run(first, c, func(s *ops.AdamWState) { s.Copy = x.state.Grad }), ops.ErrShape)
	require.ErrorIs(t, r.o.AdamW(r.s, ops.AdamWState{Param: x.state.Param, Grad: x.state.Grad, First: x.state.First, Second: x.state.Second, Copy: r.zeros(3, 2)},
		r.zeros(), r.zeros(), c), ops.ErrShape, "AdamW has no copies")
	require.ErrorIs(t, run(first, c, func(s *ops.AdamWState) { *s = x.state }), kernel.ErrOverlap, "one parameter in two states")
	turned := func(t *tensor.Tensor) *tensor.Tensor {
		flat, err := t.Reshape(2, 3)
		require.NoError(r, err)
		return flat
	}
	require.ErrorIs(t, run(first, c, func(s *ops.AdamWState) { s.First = turned(x.state.Second) }), kernel.ErrOverlap)
	require.ErrorIs(t, run(first, c, func(s *ops.AdamWState) { s.Grad = turned(x.state.Param) }), kernel.ErrOverlap)
	scalar := func(t *tensor.Tensor) *tensor.Tensor {
		one, err := t.Slice(0, 0, 1, 1)
		require.NoError(r, err)
		one, err = one.Slice(1, 0, 1, 1)
		require.NoError(r, err)
		return one
	}
	require.ErrorIs(t, run(ops.AdamWStep{Rate: 0.1, StepAt: scalar(x.state.Param)}, c, none), kernel.ErrOverlap)
	var types *tensor.TypeError
	wide := r.trained(tensor.Float64, []int{2, 3}, contiguous)
	err = run(first, c, func(s *ops.AdamWState) { *s = wide.state })
	require.ErrorAs(t, err, &types)
	require.ErrorContains(t, err, "AdamW")
	counter, err := tensor.Zeros(r.s, tensor.Int64)
	require.NoError(t, err)
	require.ErrorAs(t, run(ops.AdamWStep{StepAt: counter}, c, none), &types)
	require.ErrorAs(t, run(ops.AdamWStep{Step: 1, SkipAt: r.zeros()}, c, none), &types)
	require.ErrorAs(t, run(ops.AdamWStep{Step: 1, ScaleAt: r.made(tensor.Bool)}, c, none), &types)
	require.ErrorAs(t, run(first, c, func(s *ops.AdamWState) { s.Copy = r.made(tensor.Float64, 2, 3) }), &types)
	r.near(before, x.state.Param, 0, 0)
	require.NoError(t, r.o.AdamWAll(r.s, nil, first, c))
	require.NoError(t, run(first, c, none))
	require.NoError(t, run(first, c, func(s *ops.AdamWState) { s.Grad = turned(x.state.Grad) }), "gradients are read alone")
}
