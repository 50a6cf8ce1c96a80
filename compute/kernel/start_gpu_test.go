//go:build gpu

package kernel_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/store"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// startKernels is how many kernels the process of BenchmarkStart needs.
const startKernels = 50

// startNeeds are kernels as models have them: element-wise ones, softmaxes, norms and sums. Numbers that differ by round make them new to the
// driver's cache.
func startNeeds(b *testing.B, by *kernel.Compiler, round int) (all []kernel.Need) {
	b.Helper()
	flat, square, column := shaped(b, 1<<20), shaped(b, 1024, 1024), shaped(b, 1024, 1)
	x, y := inputs(tensor.Float32)
	for i := range startKernels {
		number := expr.Number(float64(round*startKernels+i+1) / 1024)
		var n kernel.Need
		var err error
		switch i % 10 {
		case 6:
			n.Kernel, err = by.Reduction([]int{-1}, x.Mul(number).Softmax())
			n.Layouts = []layout.Layout{square, square}
		case 7:
			n.Kernel, err = by.Reduction([]int{-1}, x.Mul(number).LayerNorm(1e-5))
			n.Layouts = []layout.Layout{square, square}
		case 8:
			n.Kernel, err = by.Reduction([]int{-1}, x.Mul(number).Sum())
			n.Layouts = []layout.Layout{square, column}
		case 9:
			n.Kernel, err = by.Reduction(plan.All, x.Mul(number).Sum())
			n.Layouts = []layout.Layout{flat, shaped(b)}
		case 4, 5:
			n.Kernel, err = by.Elementwise(x.Mul(number).Gelu())
			n.Layouts = []layout.Layout{flat, flat}
		default:
			n.Kernel, err = by.Elementwise(x.Mul(y).Add(number).Relu())
			n.Layouts = []layout.Layout{flat, flat, flat}
		}
		require.NoError(b, err)
		all = append(all, n)
	}
	return all
}

func shaped(b *testing.B, shape ...int) layout.Layout {
	b.Helper()
	l, err := layout.Of(shape...)
	require.NoError(b, err)
	return l
}

// BenchmarkStart measures how long a process waits for the code of its kernels, with CUDA_CACHE_DISABLE=1 in the environment: else the driver's
// cache is measured. store=none: LoadModule compiles. store=empty: the linker compiles, and the code is written. store=full: the code is
// in a folder. Targets on four threads: 300 ms with nothing stored, 10 ms with a full store.
func BenchmarkStart(b *testing.B) {
	require.Equal(b, "1", os.Getenv("CUDA_CACHE_DISABLE"), "run it with CUDA_CACHE_DISABLE=1")
	r := newRig(b)
	round := 0
	for _, kind := range []string{"none", "empty", "full"} {
		for _, threads := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("store=%s/threads=%d", kind, threads), func(b *testing.B) {
				var compile, load time.Duration
				kept := store.Open(store.Config{Folder: b.TempDir()}).On(r.c.Info())
				start := func() {
					with := []kernel.Option{kernel.Threads(threads)}
					if kind != "none" {
						with = append(with, kernel.WithStore(kept))
					}
					kernels, err := kernel.NewCompiler(r.c, with...)
					require.NoError(b, err)
					if kind != "full" {
						round++
					}
					needs := startNeeds(b, kernels, round)
					b.StartTimer()
					err = kernels.WarmUp(context.Background(), needs, nil)
					b.StopTimer()
					require.NoError(b, err)
					stats := kernels.Stats()
					compile, load = compile+stats.CompileTime, load+stats.LoadTime
					require.NoError(b, kernels.Close())
				}
				b.StopTimer()
				if kind == "full" {
					round++
					start()
					compile, load = 0, 0
					b.ResetTimer()
				}
				for range b.N {
					start()
				}
				b.ReportMetric(float64(compile.Milliseconds())/float64(b.N), "compile-ms/op")
				b.ReportMetric(float64(load.Microseconds())/float64(b.N), "load-us/op")
			})
		}
	}
}
