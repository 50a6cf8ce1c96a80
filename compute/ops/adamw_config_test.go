package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// The zero configuration is PyTorch's, and an epsilon of 0 is 1e-8: a gradient of 0 makes no NaN.
func TestTheZeroConfigurationOfAdamW(t *testing.T) {
	r := newRig(t)
	step := func(config ops.AdamWConfig, many bool) []float64 {
		state := ops.AdamWState{Param: r.tensor(array{[]int{3}, []float64{1, -2, 3}}), Grad: r.tensor(array{[]int{3}, []float64{0, 1e-3, -5}})}
		var err error
		state.First, err = tensor.Zeros(r.s, tensor.Float32, 3)
		require.NoError(t, err)
		state.Second, err = tensor.Zeros(r.s, tensor.Float32, 3)
		require.NoError(t, err)
		if many {
			require.NoError(t, r.o.AdamWAll(r.s, []ops.AdamWState{state}, ops.AdamWStep{Rate: 0.1, Step: 1}, config))
		} else {
			rate, number := r.tensor(array{nil, []float64{0.1}}), r.tensor(array{nil, []float64{1}})
			require.NoError(t, r.o.AdamW(r.s, state, rate, number, config))
		}
		return r.read(state.Param).values
	}
	for _, many := range []bool{false, true} {
		for _, c := range []struct{ short, whole ops.AdamWConfig }{
			{ops.AdamWConfig{}, ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01}},
			{ops.AdamWConfig{Beta2: 0.99}, ops.AdamWConfig{Beta2: 0.99, Epsilon: 1e-8}},
			{ops.AdamWConfig{Decay: 0.5}, ops.AdamWConfig{Epsilon: 1e-8, Decay: 0.5}},
		} {
			want := step(c.whole, many)
			require.Equal(t, want, step(c.short, many), c.short)
			r.near([]float64{1 - 0.1*c.whole.Decay, -2*(1-0.1*c.whole.Decay) - 0.1, 3*(1-0.1*c.whole.Decay) + 0.1}, r.tensor(array{[]int{3}, want}), 2e-5, 0, c.whole)
		}
	}
}

func TestNumbersThatAdamWRefuses(t *testing.T) {
	r := newRig(t)
	for text, config := range map[string]ops.AdamWConfig{
		"the Epsilon is -1e-08": {Epsilon: -1e-8}, "the Epsilon is NaN": {Epsilon: nan}, "the Epsilon is +Inf": {Epsilon: inf}, "the Epsilon is 1e-60": {Epsilon: 1e-60},
		"the Decay is -1": {Decay: -1}, "the Decay is NaN": {Decay: nan}, "the Decay is +Inf": {Decay: inf}, "the Beta1 is 1": {Beta1: 1}, "the Beta2 is NaN": {Beta2: nan},
	} {
		err := r.o.AdamWAll(r.s, nil, ops.AdamWStep{Step: 1}, config)
		require.ErrorIs(t, err, ops.ErrNumber, text)
		require.ErrorContains(t, err, text)
		err = r.o.AdamW(r.s, ops.AdamWState{}, nil, nil, config)
		require.ErrorIs(t, err, ops.ErrNumber, text)
		require.ErrorContains(t, err, text)
	}
}
