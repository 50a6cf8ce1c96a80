//go:build gpu

package model_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/examples/gpt/model"
)

// onGPU returns a context and operations on a GPU.
func onGPU(tb testing.TB) (*cuda.Context, ops.Ops) {
	tb.Helper()
	c, err := cuda.Open(vram.Config{Driver: dynamic.New(dynamic.Config{})})
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, c.Close()) })
	o, err := ops.New(c)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		assert.NoError(tb, c.Synchronize(context.Background()))
		assert.NoError(tb, o.Close())
	})
	return c, o
}

// A GPU's tokens are the plain model's.
func TestDecoderOnGPU(t *testing.T) {
	c, o := onGPU(t)
	config := model.Char
	m, err := model.New(c, o, config, 1)
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	d, err := model.NewDecoder(c, o, config, model.Random(config, 1), model.Decoding{Batch: 8, Chunk: 32})
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	random := rand.New(rand.NewPCG(7, 0))
	var all []*text
	for _, length := range []int{1, 40, 100, 17, 64} {
		prompt := make([]int64, length)
		for i := range prompt {
			prompt[i] = random.Int64N(int64(config.Vocabulary))
		}
		x := &text{}
		x.want, err = m.Sample(prompt, 24, model.Sampling{})
		require.NoError(t, err)
		x.Sequence, x.tokens = prefilled(t, d, prompt, 24, model.Draw{})
		all = append(all, x)
	}
	var ended []*text
	for len(all) > 0 {
		all, ended = step(t, d, all, ended)
	}
	for _, x := range ended {
		assert.Equal(t, x.want, x.tokens)
	}
}

// BenchmarkDecoding measures steps of GPT-2 with 512 keys for each sequence: of the graph alone, and with the copy of the tokens to the
// host. It logs the prefill, and the kernels of a step, launched one by one.
func BenchmarkDecoding(b *testing.B) {
	c, o := onGPU(b)
	config := model.GPT2
	config.Type = tensor.BFloat16
	d, err := model.NewDecoder(c, o, config, model.Random(config, 1), model.Decoding{})
	require.NoError(b, err)
	defer func() { assert.NoError(b, d.Close()) }()
	random := rand.New(rand.NewPCG(8, 0))
	const keys, steps = 512, 32 // the keys are 480 to 544 in the steps of both runs
	for _, n := range []int{64, 32, 8, 1} {
		var all []*model.Sequence
		start := time.Now()
		for range n {
			prompt := make([]int64, keys-steps)
			for i := range prompt {
				prompt[i] = random.Int64N(int64(config.Vocabulary))
			}
			s, err := d.NewSequence(context.Background(), config.Context, model.Draw{}, nil)
			require.NoError(b, err)
			_, err = d.Prefill(s, prompt)
			require.NoError(b, err)
			all = append(all, s)
		}
		prefill := time.Since(start) / time.Duration(n)
		_, err := d.Step(all)
		require.NoError(b, err)
		start = time.Now()
		for range steps {
			_, err := d.Step(all)
			require.NoError(b, err)
		}
		whole := time.Since(start) / steps
		start = time.Now()
		for range steps {
			require.NoError(b, d.LaunchStep(n))
		}
		require.NoError(b, c.Synchronize(context.Background()))
		b.Logf("%d sequences: step %v, its graph %v; prefill of %d tokens %v", n, whole, time.Since(start)/steps, keys-steps, prefill)
		profile, err := d.Steps().StartProfile()
		require.NoError(b, err)
		require.NoError(b, d.SubmitStep(n))
		times, err := profile.Stop()
		require.NoError(b, err)
		logKernels(b, times)
		for _, s := range all {
			require.NoError(b, s.Free())
		}
	}
}

// logKernels logs how long the kernels of a name take together.
func logKernels(b *testing.B, times []cuda.KernelTime) {
	b.Helper()
	sum, count := map[string]time.Duration{}, map[string]int{}
	for _, k := range times {
		sum[k.Kernel] += k.Duration
		count[k.Kernel]++
	}
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		b.Logf("   %v in %d of %s", sum[name], count[name], name)
	}
}
