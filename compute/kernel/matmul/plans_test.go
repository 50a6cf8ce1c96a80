package matmul

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/kept"
	"github.com/go-vram/vram/internal/launchlog"
)

// Parts cover the sums, each has one, and but for the last each is as long as loads divide; there are as many as were wanted at
// most, none is shorter than the least length, but for the last, and they have no more memory than the bound.
func TestPartsOfSums(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	split := 0
	for range 20_000 {
		p := Problem{
			M: 1 + random.Int64N(300), N: 1 + random.Int64N(300), K: 1 + random.Int64N(1<<random.IntN(18)), Batch: 1 + random.Int64N(3),
			In: []gemm.Type{gemm.Float32, gemm.Float64, gemm.BFloat16}[random.IntN(3)],
		}
		blocks, wanted, least := random.Int64N(10), random.Int64N(2000), []int64{128, 256, 1024}[random.IntN(3)]
		parts, partK := divided(p, blocks, wanted, least)
		if parts == 1 {
			require.Equal(t, p.K, partK)
			continue
		}
		split++
		require.GreaterOrEqual(t, parts*partK, p.K, "%v", p)
		require.Less(t, (parts-1)*partK, p.K, "%v", p)
		require.Zero(t, partK%partStep)
		require.GreaterOrEqual(t, partK, least)
		require.LessOrEqual(t, parts, min(wanted/max(blocks*p.Batch, 1), maxParts))
		require.LessOrEqual(t, parts*p.M*p.N*p.Batch*sumType(p.In).Bytes(), int64(maxPartBytes))
	}
	assert.Greater(t, split, 1000)
	p := Problem{M: 1 << 12, N: 1 << 12, K: 1 << 14, Batch: 1, In: gemm.Float32} // of 64 MiB
	parts, _ := divided(p, 1, 100, 128)
	assert.Equal(t, int64(4), parts)
	p.In = gemm.Float64
	parts, _ = divided(p, 1, 100, 128)
	assert.Equal(t, int64(2), parts)
}

// Problems whose operands are rounded lead to those that testdata has, with the bytes of each operand; others stay.
func TestRoundedProblems(t *testing.T) {
	var text strings.Builder
	for _, precision := range []gemm.Precision{gemm.RoundedBF16, gemm.RoundedF16, gemm.TF32, gemm.IEEE} {
		for _, shape := range [][4]int64{{64, 72, 65, 1}, {2, 2, 1, 1}, {1, 64, 64, 1}, {64, 1, 64, 1}, {1, 1, 1, 1}, {30, 31, 33, 3}, {30, 31, 0, 1}} {
			for transposed := range 4 {
				p := Problem{M: shape[0], N: shape[1], K: shape[2], Batch: shape[3], Precision: precision, TransposeA: transposed&1 != 0, TransposeB: transposed&2 != 0}
				if transposed == 3 && p.Batch > 1 {
					p.StrideA, p.StrideC = 0, p.M*p.N
				}
				p, _, err := p.Check()
				require.NoError(t, err)
				inner, bytes := rounded(p)
				if inner == p {
					assert.Zero(t, bytes)
					assert.True(t, precision == gemm.TF32 || precision == gemm.IEEE || p.M == 1 || p.N == 1 || p.K == 0, "%v", p)
					continue
				}
				fmt.Fprintf(&text, "%v: %v, rows of %d and %d, strides of %d and %d, %d bytes\n", p, inner, inner.LDA, inner.LDB, inner.StrideA, inner.StrideB, bytes)
			}
		}
	}
	kept.Text(t, *update, "testdata/rounded.txt", text.String())
}

// Operands begin at multiples of 16 bytes with each of their rows and matrices, or not; C at multiples of four elements.
func TestAlignments(t *testing.T) {
	driver, _ := launchlog.New()
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	stream, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(stream)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	b, err := c.Alloc(1 << 20)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Free()) })
	for name, x := range map[string]struct {
		change func(p *Problem, o *Operands)
		want   alignment
	}{
		"all":          {func(*Problem, *Operands) {}, alignment{true, true, true, false}},
		"A":            {func(_ *Problem, o *Operands) { o.A.Offset += 8 }, alignment{false, true, true, false}},
		"B":            {func(_ *Problem, o *Operands) { o.B.Offset += 8 }, alignment{true, false, true, false}},
		"C":            {func(_ *Problem, o *Operands) { o.C.Offset += 8 }, alignment{true, true, false, false}},
		"C of halves":  {func(p *Problem, o *Operands) { p.Out = gemm.BFloat16; o.C.Offset += 8 }, alignment{true, true, true, false}},
		"rows of A":    {func(p *Problem, _ *Operands) { p.LDA += 4 }, alignment{false, true, true, false}},
		"rows of B":    {func(p *Problem, _ *Operands) { p.LDB += 4 }, alignment{true, false, true, false}},
		"rows of C":    {func(p *Problem, _ *Operands) { p.LDC += 2 }, alignment{true, true, false, false}},
		"wide C":       {func(p *Problem, _ *Operands) { p.LDC += 4 }, alignment{true, true, true, false}},
		"batches of A": {func(p *Problem, _ *Operands) { p.StrideA += 4 }, alignment{false, true, true, false}},
		"batches of B": {func(p *Problem, _ *Operands) { p.StrideB += 4 }, alignment{true, false, true, false}},
		"batches of C": {func(p *Problem, _ *Operands) { p.StrideC += 2 }, alignment{true, true, false, false}},
	} {
		p := Problem{M: 64, N: 64, K: 64, In: gemm.Float16, Out: gemm.Float32, LDA: 64, LDB: 72, LDC: 80, StrideA: 4096, StrideB: 8192, StrideC: 16384, Batch: 2}
		o := Operands{A: cuda.Part(b, 1<<10, 1<<14), B: cuda.Part(b, 1<<15, 1<<15), C: cuda.Part(b, 1<<17, 1<<17)}
		x.change(&p, &o)
		assert.Equal(t, x.want, alignmentOf(p, o, false), name)
		x.want.a, x.want.b, x.want.converted = p.LDA%8 == 0 && p.StrideA%8 == 0, p.LDB%8 == 0 && p.StrideB%8 == 0, true
		assert.Equal(t, x.want, alignmentOf(p, o, true), "%s, in the workspace", name)
	}

	// Tensor maps have rows as they lie in memory.
	m := operandMap(gemm.Float16, cuda.Part(b, 64, 1<<14), 30, 40, 48, 2000, 3, true, 192)
	assert.Equal(t, cudadrv.TensorMap{
		Ptr: b.Ptr() + 64, Type: cudadrv.TensorFloat16, Swizzle: cudadrv.Swizzle128, Rank: 3, Dims: [cudadrv.MaxTensorRank]int64{40, 30, 3},
		Strides: [cudadrv.MaxTensorRank - 1]int64{96, 4000}, Box: [cudadrv.MaxTensorRank]int32{64, 192, 1},
	}, m)
	m = operandMap(gemm.BFloat16, cuda.Part(b, 64, 1<<14), 30, 40, 48, 0, 3, false, 192)
	assert.Equal(t, cudadrv.TensorMap{
		Ptr: b.Ptr() + 64, Type: cudadrv.TensorBFloat16, Swizzle: cudadrv.Swizzle128, Rank: 3, Dims: [cudadrv.MaxTensorRank]int64{40, 30, 1},
		Strides: [cudadrv.MaxTensorRank - 1]int64{96, 30 * 96}, Box: [cudadrv.MaxTensorRank]int32{64, 64, 1},
	}, m)
}

// Products by bulk copies need strides that tensor maps have, and aligned operands, on a device that copies.
func TestBulkLimits(t *testing.T) {
	d := processor{132, 90, true}
	p, _, err := gemm.Problem{In: gemm.BFloat16, M: 128, N: 128, K: 128}.Check()
	require.NoError(t, err)
	assert.True(t, d.bulks(variant.BF16, p, aligned))
	assert.False(t, d.bulks(variant.BF16, p, alignment{b: true}))
	assert.False(t, d.bulks(variant.BF16, p, alignment{a: true}))
	assert.False(t, processor{132, 90, false}.bulks(variant.BF16, p, aligned))
	assert.False(t, processor{132, 100, true}.bulks(variant.BF16, p, aligned))
	const far = cudadrv.MaxTensorStrideBytes / 2
	for _, x := range []struct {
		change func(p *Problem, elements int64)
		each   int64
	}{
		{func(p *Problem, n int64) { p.StrideA = n }, 1},
		{func(p *Problem, n int64) { p.StrideB = n }, 1},
		{func(p *Problem, n int64) { p.LDA = n }, 128},
		{func(p *Problem, n int64) { p.LDB = n }, 128},
	} {
		for _, more := range []int64{-1, 0} {
			q := p
			x.change(&q, far/x.each+more)
			assert.Equal(t, more < 0, d.bulks(variant.BF16, q, aligned), "%v", q)
		}
	}
	p.Batch = 1 << 31 / 2 / maxParts // two tiles
	p.M = 256
	assert.False(t, d.bulks(variant.BF16, p, aligned))
	p.M = 128
	p.Batch = 1<<31/2/maxParts - 1
	assert.True(t, d.bulks(variant.BF16, p, aligned))
	for transposed := range 4 {
		p, _, err := gemm.Problem{M: 128, N: 128, K: 128, TransposeA: transposed&1 != 0, TransposeB: transposed&2 != 0}.Check()
		require.NoError(t, err)
		for _, kind := range []int{variant.TF32, variant.Three} {
			assert.Equal(t, transposed != 1, d.bulks(kind, p, aligned), "%v", p)
			p.StrideA = far / 2 // elements of twice the size
			assert.False(t, d.bulks(kind, p, aligned), "%v", p)
			p.StrideA--
			assert.Equal(t, transposed != 1, d.bulks(kind, p, aligned), "%v", p)
			p.StrideA = 128 * 128
		}
	}
}

// Of a product of two operands across the summed direction the smaller one is transposed first, each matrix of a batch that has its own.
func TestTheOperandThatIsTransposedFirst(t *testing.T) {
	for _, x := range []struct {
		m, n, k, batch         int64
		shared                 bool // by the batch
		a, b                   bool // transposed in the inner problem
		ld, stride, wantsBytes int64
	}{
		{64, 64, 64, 1, false, true, true, 64, 0, 64 * 64 * 4},
		{65, 64, 63, 1, false, true, true, 64, 0, 64 * 64 * 4},
		{64, 65, 61, 1, false, false, false, 64, 0, 64 * 64 * 4},
		{3, 5, 7, 1, false, false, false, 8, 0, 256},
		{5, 3, 7, 3, false, true, true, 8, 24, 512},
		{5, 3, 7, 3, true, true, true, 8, 0, 256},
	} {
		p := gemm.Problem{M: x.m, N: x.n, K: x.k, Batch: x.batch, TransposeA: true, Precision: gemm.TF32}
		p.StrideA, p.StrideB, p.StrideC = x.m*x.k, x.n*x.k, x.m*x.n
		if x.shared {
			p.StrideB = 0
		}
		p, _, err := p.Check()
		require.NoError(t, err)
		inner, bytes := turned(p)
		assert.Equal(t, x.wantsBytes, bytes, "%v", p)
		assert.Equal(t, [2]bool{x.a, x.b}, [2]bool{inner.TransposeA, inner.TransposeB}, "%v", p)
		ld, stride := inner.LDB, inner.StrideB
		if !inner.TransposeA {
			ld, stride = inner.LDA, inner.StrideA
		}
		assert.Equal(t, x.ld, ld, "%v", p)
		if x.batch > 1 {
			assert.Equal(t, x.stride, stride, "%v", p)
		}
		_, _, err = inner.Check()
		require.NoError(t, err)
	}
}

// The kernels of a product are its own, one that adds parts, and one that rounds.
func TestKernelsOfProducts(t *testing.T) {
	l := launch{variant: "v", kernel: "k", parts: 1}
	assert.Equal(t, [3]used{{"v", "k"}}, kernelsOf(l, false))
	assert.Equal(t, [3]used{{"v", "k"}, {}, {"vector_f32", "narrow"}}, kernelsOf(l, true))
	l.parts = 2
	assert.Equal(t, [3]used{{"v", "k"}, {"vector_f32", "sum_f32"}}, kernelsOf(l, false))
	l.turnedBytes = 1
	assert.Equal(t, [3]used{{"v", "k"}, {"vector_f32", "sum_f32"}, {"vector_f32", "turn"}}, kernelsOf(l, false))
	l.turnedBytes = 0
	l.variant = "plain_f64_64x64"
	assert.Equal(t, [3]used{{"plain_f64_64x64", "k"}, {"vector_f64", "sum_f64"}}, kernelsOf(l, false))
	l.variant = "vector_f64"
	assert.Equal(t, [3]used{{"vector_f64", "k"}, {"vector_f64", "sum_f64"}}, kernelsOf(l, false))
}

func TestTextsOfChoices(t *testing.T) {
	for choice := Any; choice <= Library; choice++ {
		text, err := json.Marshal(choice)
		require.NoError(t, err)
		assert.JSONEq(t, `"`+choice.String()+`"`, string(text))
		read := Choice(77)
		require.NoError(t, json.Unmarshal(text, &read))
		assert.Equal(t, choice, read)
	}
	assert.Equal(t, "Choice(3)", Choice(3).String())
	read := Own
	require.EqualError(t, read.UnmarshalText([]byte("mine")), `matmul: invalid Choice "mine": want any, own, library`)
	assert.Equal(t, Own, read)
}
