//go:build gpu

package ops_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// BenchmarkStepOfGPT2 measures all of a training step of GPT-2 small except its layers: launches one after the other, until
// the device has finished them.
func BenchmarkStepOfGPT2(b *testing.B) {
	r := newRig(b)
	const vocabulary, width, layers, tokens = 50257, 768, 12, 8192
	zeros := func(shape ...int) *tensor.Tensor {
		t, err := tensor.Zeros(r.s, tensor.Float32, shape...)
		require.NoError(b, err)
		return t
	}
	shapes := [][]int{{vocabulary, width}, {1024, width}, {width}, {width}}
	for range layers {
		shapes = append(shapes, []int{width}, []int{width}, []int{width, 3 * width}, []int{3 * width}, []int{width, width}, []int{width},
			[]int{width}, []int{width}, []int{width, 4 * width}, []int{4 * width}, []int{4 * width, width}, []int{width})
	}
	var states []ops.AdamWState
	for _, shape := range shapes {
		states = append(states, ops.AdamWState{Param: zeros(shape...), Grad: zeros(shape...), First: zeros(shape...), Second: zeros(shape...)})
	}
	number := 0
	table, dtable, rows := zeros(vocabulary, width), zeros(vocabulary, width), zeros(tokens, width)
	numbers := make([]int64, tokens)
	for i := range numbers {
		numbers[i] = int64(r.random.IntN(vocabulary))
	}
	indices, err := tensor.From(r.s, numbers)
	require.NoError(b, err)
	same, err := tensor.Zeros(r.s, tensor.Int64, tokens)
	require.NoError(b, err)
	large := zeros(1 << 24)
	for name, f := range map[string]func() error{
		"AdamWAll": func() error {
			number++
			return r.o.AdamWAll(r.c, states, ops.AdamWStep{Rate: 1e-3, Step: number}, ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8})
		},
		"embedding":                        func() error { return r.o.EmbeddingInto(r.c, rows, table, indices) },
		"embedding-backward":               func() error { return r.o.EmbeddingBackwardInto(r.c, dtable, rows, indices) },
		"embedding-backward-add":           func() error { return r.o.EmbeddingBackwardAdd(r.c, dtable, rows, indices) },
		"embedding-backward-add/one-index": func() error { return r.o.EmbeddingBackwardAdd(r.c, dtable, rows, same) },
		"uniform/n=16777216":               func() error { return r.o.UniformInto(r.c, large, ops.Random{}, 0, 1) },
		"normal/n=16777216":                func() error { return r.o.NormalInto(r.c, large, ops.Random{}, 0, 1) },
	} {
		b.Run("op="+name, func(b *testing.B) {
			require.NoError(b, f())
			require.NoError(b, r.c.Synchronize(context.Background()))
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, r.c.Synchronize(context.Background()))
		})
	}
}
