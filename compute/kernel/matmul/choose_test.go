package matmul

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/cuda/gemm"
)

// ofKinds are products of each kind that has tiles of its own.
var ofKinds = map[int]gemm.Problem{
	variant.Three: {Precision: gemm.TF32x3}, variant.TF32: {Precision: gemm.TF32},
	variant.BF16: {In: gemm.BFloat16}, variant.F16: {In: gemm.Float16},
}

// Each embedded variant is the choice for some product on some device: one that another has superseded is to be deleted.
func TestEachVariantIsChosen(t *testing.T) {
	chosen := map[string]bool{}
	for _, d := range []processor{
		{40, 75, false}, {80, 70, false}, {72, 86, false}, {128, 89, false}, {132, 90, false}, {132, 90, true}, {148, 100, true}, {170, 120, true},
	} {
		for _, p := range []gemm.Problem{
			{}, {Precision: gemm.TF32}, {Precision: gemm.TF32x3}, {In: gemm.BFloat16}, {In: gemm.Float16}, {In: gemm.Float64, Out: gemm.Float64},
		} {
			for _, m := range []int64{1, 64, 500, 1024, 4096} {
				for _, n := range []int64{64, 700, 1000, 4096} {
					for transposed := range 8 {
						p.M, p.N, p.K, p.Batch = m, n, 1024, 1
						if transposed&4 != 0 {
							p.K = 100
						}
						p.TransposeA, p.TransposeB = transposed&1 != 0, transposed&2 != 0
						l, err := choose(p, aligned, d)
						require.NoError(t, err)
						if variants[l.variant].Capability <= d.capability {
							chosen[l.variant] = true
						}
					}
				}
			}
		}
	}
	for name := range variants {
		assert.True(t, chosen[name], "%s is never chosen", name)
	}
}

// Every device has a tile of each kind, whose stages fit into its shared memory.
func TestTilesFitTheDevice(t *testing.T) {
	for _, capability := range []int{80, 86, 87, 89, 90, 100, 120, 999} {
		d := processor{multiprocessors: 132, capability: capability}
		for kind, p := range ofKinds {
			require.Len(t, microseconds[kind], len(variant.Tiles(kind)))
			for _, size := range []int64{2, 600, 5000} {
				for transposed := range 4 {
					p.M, p.N, p.K, p.Batch = size, size, size, 1
					p.TransposeA, p.TransposeB = transposed&1 != 0, transposed&2 != 0
					l, err := choose(p, aligned, d)
					require.NoError(t, err)
					assert.Contains(t, variants, l.variant, "capability %d: %v", capability, p)
					assert.LessOrEqual(t, l.shared, routine.MaxSharedBytes(capability), "capability %d: %s", capability, l.variant)
				}
			}
		}
	}
}

// Small products of fp32 have small tiles: neither many of the usual ones nor long sums.
func TestSmallProducts(t *testing.T) {
	for _, c := range []struct {
		m, n, k int64
		want    string
	}{
		{12, 32, 32, "plain_f32_16x16"},
		{128, 128, 128, "plain_f32_16x16"},
		{256, 64, 1, "plain_f32_16x16"},
		{129, 128, 128, "staged_f32_64x64_nn"},
		{64, 64, 129, "staged_f32_64x64_nn"},
	} {
		l, err := choose(gemm.Problem{M: c.m, N: c.n, K: c.k, Batch: 1}, aligned, processor{132, 90, true})
		require.NoError(t, err)
		assert.Equal(t, c.want, l.variant, "%v", c)
	}
}

// The smaller operand of two that lie across the sums is transposed first, wherever it begins, if the other one is aligned. The
// result may begin anywhere.
func TestTheSmallerOperandIsTransposedFirst(t *testing.T) {
	for _, precision := range []gemm.Precision{gemm.TF32, gemm.TF32x3} {
		for _, c := range []struct {
			m, n  int64
			other func(alignment) bool // whether the operand that stays is aligned
		}{
			{2048, 4096, func(a alignment) bool { return a.b }},
			{4096, 4096, func(a alignment) bool { return a.a }},
			{4096, 2048, func(a alignment) bool { return a.a }},
		} {
			for bits := range 8 {
				a := alignment{a: bits&1 != 0, b: bits&2 != 0, c: bits&4 != 0}
				p := gemm.Problem{M: c.m, N: c.n, K: 4096, Batch: 1, TransposeA: true, Precision: precision}
				l, err := choose(p, a, processor{132, 90, true})
				require.NoError(t, err)
				assert.Equal(t, c.other(a), l.turnedBytes > 0, "%v, %+v", p, a)
				assert.Equal(t, c.other(a), variants[l.variant].Bulk, "%v, %+v", p, a)
			}
		}
	}
}

// On an H200 squares have the tiles that were the fastest there, with bulk copies and without.
func TestTilesOfSquares(t *testing.T) {
	for _, x := range []struct {
		kind       int
		bulk       bool
		transposed string
		want       [4]string // of 512, 1024, 2048 and 4096
	}{
		{variant.Three, false, "nn", [4]string{"tensor_three_64x32_nn", "tensor_three_128x64_nn", "tensor_three_128x128_nn", "tensor_three_128x128_nn"}},
		{variant.TF32, false, "nn", [4]string{"tensor_tf32_64x32_nn", "tensor_tf32_128x64_nn", "tensor_tf32_128x256_nn", "tensor_tf32_128x256_nn"}},
		{variant.BF16, false, "nn", [4]string{"tensor_bf16_64x32_nn", "tensor_bf16_128x64_nn", "tensor_bf16_128x256_nn", "tensor_bf16_128x256_nn"}},
		{variant.TF32, true, "nn", [4]string{"tensor_tf32_64x32_nn", "bulk_tf32_64x128_nn", "bulk_tf32_256x128_nn", "bulk_tf32_256x128_nn"}},
		{variant.TF32, true, "tn", [4]string{"tensor_tf32_64x32_tn", "bulk_tf32_128x64_tt", "bulk_tf32_128x256_tt", "bulk_tf32_128x256_tt"}},
		{variant.TF32, true, "nt", [4]string{"tensor_tf32_64x32_nt", "bulk_tf32_128x64_nt", "bulk_tf32_128x256_nt", "bulk_tf32_128x256_nt"}},
		{variant.TF32, true, "tt", [4]string{"tensor_tf32_64x32_tt", "bulk_tf32_128x64_tt", "bulk_tf32_128x256_tt", "bulk_tf32_128x256_tt"}},
		{variant.Three, true, "nn", [4]string{"tensor_three_64x32_nn", "bulk_three_64x128_nn", "bulk_three_128x128_nn", "bulk_three_128x128_nn"}},
	} {
		for i, size := range []int64{512, 1024, 2048, 4096} {
			p := ofKinds[x.kind]
			p.M, p.N, p.K, p.Batch = size, size, size, 1
			p.TransposeA, p.TransposeB = x.transposed[0] == 't', x.transposed[1] == 't'
			l, err := choose(p, aligned, processor{multiprocessors: 132, capability: 90, bulk: x.bulk})
			require.NoError(t, err)
			assert.Equal(t, x.want[i], l.variant)
			assert.Equal(t, 1, l.parts)
		}
	}
}

// On an H100 the products of a transformer's layer, and squares, have the tiles and parts that were the fastest there: fewest
// rounds of tiles, and sums in parts where most multiprocessors would have none.
func TestTilesOfALayer(t *testing.T) {
	h100 := processor{multiprocessors: 132, capability: 90, bulk: true}
	for _, x := range []struct {
		m, n, k int64
		tile    string
		parts   int
	}{
		{1024, 1024, 1024, "128x64", 1},
		{2048, 2048, 2048, "128x256", 1},
		{8192, 8192, 8192, "128x256", 1},
		{8192, 2304, 768, "128x192", 1},
		{8192, 3072, 768, "128x256", 1},
		{8192, 768, 768, "128x192", 1},
		{8192, 768, 3072, "128x192", 1},
		{2304, 768, 8192, "128x128", 1},
		{3072, 768, 8192, "128x192", 1},
		{768, 768, 8192, "128x192", 5},
		{8, 768, 768, "64x32", 3},
	} {
		p, _, err := gemm.Problem{In: gemm.BFloat16, Out: gemm.BFloat16, M: x.m, N: x.n, K: x.k}.Check()
		require.NoError(t, err)
		l, err := choose(p, aligned, h100)
		require.NoError(t, err)
		assert.Contains(t, l.variant, x.tile, "%v", p)
		assert.Equal(t, x.parts, l.parts, "%v", p)
	}
}

// An operand is aligned if every row of every matrix begins at a multiple of what a load reads, and in no other case: for each operand,
// by the place of its first element, its leading dimension and its stride.
func TestAnOperandIsAlignedInEachRowOfEachMatrix(t *testing.T) {
	const batch, rows = 3, 4
	for _, kind := range []gemm.Problem{{}, {In: gemm.BFloat16, Out: gemm.BFloat16}, {In: gemm.Float16}, {In: gemm.Float64, Out: gemm.Float64}} {
		in, out := kind.In.Bytes(), kind.Out.Bytes()
		every := func(offset, ld, stride, bytes, wide int64) bool {
			for matrix := range int64(batch) {
				for row := range int64(rows) {
					if (offset+(matrix*stride+row*ld)*bytes)%wide != 0 {
						return false
					}
				}
			}
			return true
		}
		for offset := range int64(5) {
			for _, ld := range []int64{64, 65, 66, 68, 72} {
				for _, stride := range []int64{1024, 1025, 1026, 1028, 1032} {
					p := kind
					p.LDA, p.LDB, p.LDC, p.StrideA, p.StrideB, p.StrideC = 64, 64, 64, 1024, 1024, 1024
					for operand := range 3 {
						var o Operands
						at, want := p, aligned
						switch operand {
						case 0:
							at.LDA, at.StrideA, o.A.Offset = ld, stride, offset*in
							want.a = every(offset*in, ld, stride, in, 16)
						case 1:
							at.LDB, at.StrideB, o.B.Offset = ld, stride, offset*in
							want.b = every(offset*in, ld, stride, in, 16)
						case 2:
							at.LDC, at.StrideC, o.C.Offset = ld, stride, offset*out
							want.c = every(offset*out, ld, stride, out, 4*out)
						}
						require.Equal(t, want, alignmentOf(at, o, false), "%+v at %d", at, offset)
					}
				}
			}
		}
	}
}
