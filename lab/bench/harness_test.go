package bench

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuantile(t *testing.T) {
	assert.Zero(t, quantile(nil, 0.5))
	assert.InDelta(t, 2.0, quantile([]float64{3, 1, 2}, 0.5), 0)
	assert.InDelta(t, 2.5, quantile([]float64{4, 1, 3, 2}, 0.5), 0)
	var many []float64
	for i := range 1000 {
		many = append(many, float64(999-i))
	}
	assert.InDelta(t, 990.0, quantile(many, 0.99), 0)
	assert.InDelta(t, 999.0, quantile(many, 0.999), 0)
}

func TestTogetherRunsEveryMemberAndKeepsErrors(t *testing.T) {
	for i, count := range []int{1, 2, 16} {
		ran := make([]bool, count)
		broken := errors.New("broken")
		began, ended := 0, 0
		measuring := i > 0
		o := Options{Begin: func() { began++ }, End: func() { ended++ }, measuring: &measuring}
		r, err := o.together(count, func(member int) error {
			ran[member] = true
			if member == count-1 {
				return broken
			}
			return nil
		})
		require.ErrorIs(t, err, broken)
		assert.NotContains(t, ran, false)
		assert.Positive(t, r.elapsed)
		assert.Equal(t, measuring, began == 1, "only around what is measured")
		assert.Equal(t, measuring, ended == 1)
	}
}

func TestMutexHeapHandsOutEachAddressOnce(t *testing.T) {
	heap := newMutexHeap()
	w := newMutexHands(heap)
	seq := newSequence(50, logUniform(512, 1<<20))
	require.NoError(t, w.fill(seq, 50))
	for range 200 {
		require.NoError(t, w.churn(seq, 10))
		begins := map[uint64]bool{}
		for _, b := range w.live {
			require.False(t, begins[b.begin])
			begins[b.begin] = true
		}
	}
	require.NoError(t, w.drain())
}

func TestLogUniformStaysInRangeAndHardlyRepeats(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	draw := logUniform(variedLeastBytes, variedMostBytes)
	sizes := map[int64]bool{}
	small := 0
	for range 10_000 {
		s := draw(r)
		require.GreaterOrEqual(t, s, int64(variedLeastBytes))
		require.LessOrEqual(t, s, int64(variedMostBytes))
		sizes[s] = true
		if s < 2<<20 {
			small++
		}
	}
	assert.Greater(t, len(sizes), 9_800)
	assert.InDelta(t, 5_000, small, 300, "half are below the middle of the logarithms")
}
