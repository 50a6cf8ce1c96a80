package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/store"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// BenchmarkPrepare compiles a kernel of its own each time, or takes it from a store. The driver's own cache must be off:
// CUDA_CACHE_DISABLE=1.
func BenchmarkPrepare(b *testing.B) {
	dev, err := vram.Open(vram.Config{Driver: driver()})
	require.NoError(b, err)
	stream, err := dev.NewStream()
	require.NoError(b, err)
	c, err := cuda.NewContext(stream)
	require.NoError(b, err)
	b.Setenv(store.Variable, "")
	x, err := tensor.From(c, make([]float32, 64), 8, 8)
	require.NoError(b, err)
	z, err := tensor.New(c, tensor.Float32, 8, 8)
	require.NoError(b, err)
	config := store.Config{Folder: b.TempDir()}
	number := 0
	for _, mode := range []string{"none", "written", "kept"} {
		b.Run("store="+mode, func(b *testing.B) {
			kept := store.Open(config)
			for b.Loop() {
				b.StopTimer()
				var with []kernel.Option
				if mode != "none" {
					with = append(with, kernel.WithStore(kept.On(c.Info())))
				}
				if mode != "kept" {
					number++ // a text that no store and no cache has
				}
				kernels, err := kernel.NewCompiler(c, with...)
				require.NoError(b, err)
				a := expr.Input(0, tensor.Float32).Mul(expr.Number(float64(number)))
				k, err := kernels.Reduction([]int{-1}, a.Softmax())
				require.NoError(b, err)
				b.StartTimer()
				_, err = k.Prepare([]*tensor.Tensor{z}, x).Await(context.Background())
				require.NoError(b, err)
				b.StopTimer()
				require.NoError(b, kernels.Close())
				b.StartTimer()
			}
		})
	}
	require.NoError(b, x.Free())
	require.NoError(b, z.Free())
	require.NoError(b, c.Close())
	require.NoError(b, dev.Close())
}
