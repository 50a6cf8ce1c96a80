package matmul_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda/gemm"
)

// groupShape is a product of 3xTF32 that warpgroups compute.
type groupShape struct{ m, n, k, batch int64 }

// Products of 3xTF32 by warpgroups are within the promised error: each transposition, with edges and batches, of one stage
// and of more than are ahead.
func TestProductsByWarpgroups(t *testing.T) {
	r, shapes := groupRig(t)
	testGroups(t, r, shapes)
}

func testGroups(t *testing.T, r *rig, shapes []groupShape) {
	t.Helper()
	random := newRandom(21)
	if testing.Short() {
		shapes = shapes[:2]
	}
	for _, shape := range shapes {
		for transposed := range tileTranspositions() {
			p := gemm.Problem{Precision: gemm.TF32x3, M: shape.m, N: shape.n, K: shape.k, Batch: shape.batch}
			p.TransposeA, p.TransposeB = transposed&1 != 0, transposed&2 != 0
			p.Bias = transposed == 1
			if transposed == 2 {
				p.LDA, p.LDB, p.LDC = p.K+4, p.K+8, p.N+4
			}
			path := r.multiply(random, p, 1.5, float64(transposed%2), 0, matmul.Own)
			assert.Contains(t, path.Kernel, "group_three")
		}
	}
}

// Other kernels compute the sizes whose edges they do not handle.
func TestProductsThatWarpgroupsDoNotCompute(t *testing.T) {
	r, shapes := groupRig(t)
	random := newRandom(22)
	s := shapes[0]
	of := func(change func(*gemm.Problem)) gemm.Problem {
		p := gemm.Problem{Precision: gemm.TF32x3, M: s.m, N: s.n, K: s.k}
		change(&p)
		return p
	}
	for name, p := range map[string]gemm.Problem{
		"K of no whole stages":        of(func(p *gemm.Problem) { p.K += 4 }),
		"rows of B that are not wide": of(func(p *gemm.Problem) { p.LDB = p.N + 1 }),
		"columns of B, of no four":    of(func(p *gemm.Problem) { p.N, p.LDB = p.N-1, p.N }),
		"rows of A, of no four":       of(func(p *gemm.Problem) { p.TransposeA, p.M, p.LDA = true, p.M-1, p.M }),
	} {
		assert.Contains(t, r.multiply(random, p, 1, 0, 0, matmul.Own).Kernel, "tensor_three", name)
	}
	p := of(func(*gemm.Problem) {})
	assert.Contains(t, r.multiply(random, p, 1, 0, 1, matmul.Own).Kernel, "tensor_three", "operands that begin elsewhere")
	odd := of(func(p *gemm.Problem) { p.M, p.N, p.LDB, p.TransposeB = p.M-1, p.N-1, p.K, true })
	assert.Contains(t, r.multiply(random, odd, 1, 0, 0, matmul.Own).Kernel, "group_three", "no rows or columns lie side by side")
}
