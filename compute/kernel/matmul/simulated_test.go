//go:build !gpu

package matmul_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// A product that was computed before allocates nothing on the heap, in one part or in several, rounded or not.
func TestAWarmProductAllocatesNothing(t *testing.T) {
	r := newRigOn(t, sim.New(sim.Config{Bytes: true, TimedKernels: true}))
	var buffers [3]cuda.Range
	for i := range buffers {
		b, err := r.c.Alloc(4 << 20)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, b.Free()) })
		buffers[i] = cuda.Whole(b)
	}
	for name, p := range map[string]gemm.Problem{
		"fp32": {M: 64, N: 64, K: 64}, "several parts": {M: 64, N: 64, K: 1 << 14, Precision: gemm.TF32}, "one row": {M: 1, N: 64, K: 64},
		"rounded": {M: 64, N: 64, K: 64, Precision: gemm.RoundedBF16}, "transposed first": {M: 128, N: 64, K: 64, Precision: gemm.TF32, TransposeA: true}, "3xTF32": {M: 500, N: 500, K: 64, Precision: gemm.TF32x3},
	} {
		o := gemm.Operands{A: buffers[0], B: buffers[1], C: buffers[2], Alpha: 1}
		multiply := func() {
			if _, err := r.m.Multiply(r.c, p, o, matmul.Own); err != nil {
				t.Error(err)
			}
		}
		multiply()
		assert.LessOrEqual(t, testing.AllocsPerRun(100, multiply), float64(runAllocs), name)
	}
	require.NoError(t, r.c.Synchronize(context.Background()))
}

// Sums of fewer stages than are fetched ahead read nothing that was not written: the interpreter looks.
func TestShortSums(t *testing.T) {
	r := newRigOn(t, sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})}))
	random := newRandom(12)
	for _, kind := range kinds {
		for _, shape := range [][3]int64{{32, 32, 8}, {32, 32, 32}, {64, 32, 32}, {64, 64, 64}, {64, 32, 96}, {64, 64, 128}, {70, 65, 40}, {33, 130, 71}} {
			p := kind
			p.M, p.N, p.K = shape[0], shape[1], shape[2]
			p.TransposeA, p.TransposeB = random.IntN(2) == 0, random.IntN(2) == 0
			r.multiply(random, p, 1, 0, 0, matmul.Own)
		}
	}
}
