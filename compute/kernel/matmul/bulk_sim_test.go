//go:build !gpu

package matmul_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// Products by bulk copies are right on the interpreter, which finds no missing wait, wrong phase or early reuse of a
// stage: each tile and transposition, with edges, several tiles for a block, batches, epilogues and parts.
func TestBulkCopiesOnTheInterpreter(t *testing.T) {
	r := newRigOn(t, sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})}))
	matmul.SetMultiprocessors(r.m, 1)
	testBulk(t, r)
}

// Products whose sums are split, of few tiles, are added in order.
func TestPartsOfBulkCopies(t *testing.T) {
	r := newRigOn(t, sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})}))
	matmul.SetMultiprocessors(r.m, 2)
	path := r.multiply(newRandom(32), gemm.Problem{In: gemm.BFloat16, M: 128, N: 64, K: 1000, TransposeA: true}, 1, 1, 0, matmul.Own)
	assert.Equal(t, "bulk_bf16_128x64_tn in 2 parts", path.String())
	matmul.SetMultiprocessors(r.m, 3)
	path = r.multiply(newRandom(34), gemm.Problem{M: 128, N: 64, K: 768, TransposeA: true, Precision: gemm.TF32}, 1, 1, 0, matmul.Own)
	assert.Equal(t, "bulk_tf32_128x64_tt in 3 parts", path.String(), "B is transposed first, in memory apart from the parts")
}

// Operands that bulk copies do not take are multiplied by other kernels.
func TestProductsThatBulkCopiesDoNotTake(t *testing.T) {
	r := newRigOn(t, sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})}))
	matmul.SetMultiprocessors(r.m, 1)
	random := newRandom(33)
	p := gemm.Problem{In: gemm.BFloat16, M: 64, N: 64, K: 64}
	assert.Equal(t, "bulk_bf16_128x64_nn", r.multiply(random, p, 1, 0, 0, matmul.Own).Kernel)
	assert.Contains(t, r.multiply(random, p, 1, 0, 1, matmul.Own).Kernel, "tensor_bf16", "operands that begin elsewhere")
	p.LDB = 65
	assert.Contains(t, r.multiply(random, p, 1, 0, 0, matmul.Own).Kernel, "tensor_bf16", "rows at no multiples of 16 bytes")
	for precision, name := range map[gemm.Precision]string{gemm.TF32: "tf32", gemm.TF32x3: "three"} {
		p = gemm.Problem{M: 128, N: 128, K: 64, Precision: precision}
		assert.Equal(t, "bulk_"+name+"_128x128_nn", r.multiply(random, p, 1, 0, 0, matmul.Own).Kernel)
		assert.Contains(t, r.multiply(random, p, 1, 0, 1, matmul.Own).Kernel, "tensor_"+name, "operands that begin elsewhere")
		p.LDB = 129
		assert.Contains(t, r.multiply(random, p, 1, 0, 0, matmul.Own).Kernel, "tensor_"+name, "rows at no multiples of 16 bytes")
		p.TransposeA, p.K = true, 512 // which pays
		assert.Equal(t, "bulk_"+name+"_128x128_tt", r.multiply(random, p, 1, 0, 0, matmul.Own).Kernel, "B is transposed first")
		p.LDA = 129
		assert.Contains(t, r.multiply(random, p, 1, 0, 0, matmul.Own).Kernel, "tensor_"+name, "A is not")
	}
}
