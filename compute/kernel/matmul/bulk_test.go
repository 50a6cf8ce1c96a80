package matmul_test

import (
	"fmt"
	"strings"
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

// bulkSingles are the same of fp32; tiles of 192 and 256 columns are of TF32 alone. A crossed product has the sides of both changed.
var bulkSingles = []struct {
	tile    string
	m, n, k int64
	change  func(p *gemm.Problem)
}{
	{"128x64", 128, 64, 32, func(*gemm.Problem) {}},
	{"128x64", 200, 48, 300, func(p *gemm.Problem) { p.Bias = true }}, // more steps than stages
	{"128x64", 72, 60, 68, func(p *gemm.Problem) { p.Batch, p.StrideA, p.StrideB = 3, p.M*p.K, p.K*p.N }},
	{"128x64", 88, 64, 40, func(p *gemm.Problem) { p.Batch, p.StrideA, p.StrideC = 2, p.M*p.K, p.M*p.N }}, // one B for all
	{"128x128", 128, 128, 64, func(*gemm.Problem) {}},
	{"128x128", 136, 120, 196, func(p *gemm.Problem) { p.Epilogue = gemm.GELUAux }}, // several tiles
	{"128x128", 120, 124, 36, func(p *gemm.Problem) { p.LDC = 129 }},                // results are no fours
	{"128x192", 88, 192, 136, func(*gemm.Problem) {}},
	{"128x192", 136, 192, 200, func(p *gemm.Problem) { p.Epilogue = gemm.GELUGradient }},
	{"128x256", 136, 248, 264, func(p *gemm.Problem) { p.Bias = true }},
	{"128x256", 136, 256, 328, func(*gemm.Problem) {}},
}

var orientations = [...]string{"nn", "tn", "nt", "tt"}

// testBulk computes products whose operands' rows are multiples of 16 bytes.
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
			assert.Equal(t, fmt.Sprintf("bulk_%v_%s_%s", p.In, x.tile, orientations[transposed]), path.Kernel)
		}
	}
	for n, x := range bulkSingles {
		for i, kernel := range []string{"tf32_%s_nn", "tf32_%s_nt", "tf32_%s_tt", "three_%s_nn", "three_%s_nt", "three_%s_tt"} {
			p := gemm.Problem{Precision: gemm.TF32, M: x.m, N: x.n, K: x.k, TransposeA: i%3 == 2, TransposeB: i%3 > 0}
			if i >= 3 {
				p.Precision = gemm.TF32x3
			}
			if p.Precision == gemm.TF32x3 && x.n > 128 || testing.Short() && i != n%6 {
				continue
			}
			tile := x.tile
			if i%3 == 0 { // crossed
				p.M, p.N = p.N, p.M
				tile = strings.TrimPrefix(tile, "128x") + "x128"
			}
			x.change(&p)
			path := r.multiply(random, p, 1.5, float64((i+n)%2), 0, matmul.Own)
			assert.Equal(t, "bulk_"+fmt.Sprintf(kernel, tile), path.Kernel)
		}
	}
	for i, kernel := range []string{"tf32_128x128_tt", "tf32_128x128_nn", "three_128x128_tt", "three_128x128_nn"} { // one operand is transposed first
		if testing.Short() && i >= 2 { // TestProductsThatBulkCopiesDoNotTake has smaller ones
			continue
		}
		p := gemm.Problem{Precision: gemm.TF32, M: 136, N: 124, K: 526, TransposeA: true, Batch: 2, StrideA: 136 * 526}
		if i >= 2 {
			p.Precision = gemm.TF32x3
		}
		if i%2 == 1 {
			p.M, p.N, p.StrideA, p.StrideB = p.N, p.M, 0, p.StrideA
		}
		path := r.multiply(random, p, 1.5, float64(i%2), 0, matmul.Own)
		assert.Equal(t, "bulk_"+kernel, path.Kernel)
	}
}
