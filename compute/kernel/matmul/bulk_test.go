package matmul_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda/gemm"
)

// bulkProducts are products of 16 bits with the tile that computes them on a device of one multiprocessor.
var bulkProducts = []struct {
	tile    string
	m, n, k int64
	change  func(p *gemm.Problem)
}{
	{"128x64", 128, 64, 64, func(*gemm.Problem) {}},
	{"128x64", 200, 48, 600, func(p *gemm.Problem) { p.Bias = true }}, // more steps than stages
	{"128x64", 72, 56, 72, func(p *gemm.Problem) { p.Batch = 3 }},
	{"128x64", 88, 64, 40, func(p *gemm.Problem) { p.Batch, p.StrideA, p.StrideB, p.StrideC = 2, 0, 64*64, 88*64 }}, // one A for all
	{"128x128", 128, 128, 64, func(p *gemm.Problem) { p.Out = gemm.Float32 }},
	{"128x128", 136, 120, 392, func(p *gemm.Problem) { p.Epilogue = gemm.GELUAux }}, // several tiles
	{"128x192", 136, 192, 200, func(p *gemm.Problem) { p.Out = gemm.Float32 }},      // stored and added without shared memory
	{"128x192", 88, 192, 136, func(*gemm.Problem) {}},
	{"128x192", 88, 192, 264, func(p *gemm.Problem) { p.Epilogue, p.Bias = gemm.GELUAux, true }}, // finished in registers
	{"128x256", 136, 248, 520, func(p *gemm.Problem) { p.Out, p.Bias = gemm.Float32, true }},
	{"128x256", 136, 256, 520, func(p *gemm.Problem) { p.Epilogue = gemm.GELUGradient }},
	{"128x128", 120, 128, 64, func(p *gemm.Problem) { p.Bias = true }}, // and old results
	{"128x128", 120, 128, 64, func(p *gemm.Problem) { p.Bias = true }},
}

// testBulk computes products whose operands' rows are multiples of eight elements.
func testBulk(t *testing.T, r *rig) {
	t.Helper()
	random := newRandom(31)
	for n, x := range bulkProducts {
		for transposed := range 4 {
			if testing.Short() && transposed != n%4 {
				continue
			}
			p := gemm.Problem{In: gemm.BFloat16, M: x.m, N: x.n, K: x.k}
			if (n+transposed)%2 == 1 {
				p.In = gemm.Float16
			}
			p.Out = p.In
			p.TransposeA, p.TransposeB = transposed&1 != 0, transposed&2 != 0
			x.change(&p)
			path := r.multiply(random, p, 1.5, float64(transposed%2), 0, matmul.Own)
			assert.Equal(t, fmt.Sprintf("bulk_%v_%s_%s", p.In, x.tile, [...]string{"nn", "tn", "nt", "tt"}[transposed]), path.Kernel)
		}
	}
}
