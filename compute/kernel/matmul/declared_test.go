//go:build !gpu

package matmul_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/vramtest"
)

// Each way of a product declares what its kernels read and write: the checker looks.
func TestProductsDeclareTheirAccesses(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Kernels())
	r := &rig{TB: t, dev: dev.Device}
	r.c = r.context()
	r.m = matmul.New(r.c)
	matmul.SetMultiprocessors(r.m, 1)
	random := newRandom(40)
	for want, p := range map[string]gemm.Problem{
		"plain_f32_16x16":                          {M: 20, N: 24, K: 16, Bias: true},
		"tensor_bf16_64x32_nn of rounded operands": {M: 40, N: 24, K: 32, Precision: gemm.RoundedBF16, Batch: 3, StrideB: 32 * 24, StrideC: 40 * 24},
		"bulk_tf32_128x128_tt":                     {M: 128, N: 120, K: 512, TransposeA: true, Precision: gemm.TF32, Batch: 2},
		"dot_f32 in 3 parts":                       {M: 3, N: 1, K: 3100, Batch: 2},
		"columns_f16":                              {M: 1, N: 30, K: 50, In: gemm.Float16, Out: gemm.Float16},
		"sum_f32":                                  {M: 9, N: 8, K: 0, Bias: true, Batch: 2, Epilogue: gemm.GELUAux},
		"plain_f64_64x64":                          {M: 30, N: 20, K: 40, In: gemm.Float64, Out: gemm.Float64},
	} {
		path := r.multiply(random, p, 1, 1, 0, matmul.Own)
		assert.Equal(t, want, path.String())
	}
	require.NoError(t, r.m.Close())
	require.NoError(t, r.c.Close())
}
