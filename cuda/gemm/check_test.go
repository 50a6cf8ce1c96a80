package gemm_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda/gemm"
)

// The extent of a problem ends with its last element.
func TestExtents(t *testing.T) {
	p, e, err := gemm.Problem{M: 3, N: 4, K: 5, TransposeB: true, LDC: 10, In: gemm.BFloat16, Batch: 2, StrideA: 0, StrideB: 20, Bias: true}.Check()
	require.NoError(t, err)
	assert.Equal(t, gemm.Extent{A: 2 * 15, B: 2 * 40, C: 4 * (30 + 2*10 + 4), Bias: 16}, e)
	assert.Equal(t, []int64{5, 5, 10, 4, 30}, []int64{p.LDA, p.LDB, p.LDC, p.LDAux, p.StrideC})

	_, e, err = gemm.Problem{M: 3, N: 4, TransposeA: true}.Check()
	require.NoError(t, err)
	assert.Equal(t, gemm.Extent{C: 48}, e, "no operand is read where K is 0")
	_, e, err = gemm.Problem{M: 3, K: 4, Bias: true}.Check()
	require.NoError(t, err)
	assert.Equal(t, gemm.Extent{}, e, "nothing is touched without elements")
}

// Sizes whose product is more than an int64 are refused, wherever it arises.
func TestOverflows(t *testing.T) {
	for name, p := range map[string]gemm.Problem{
		"A":   {M: gemm.MaxSize, N: 1, K: 1, LDA: math.MaxInt64 / 2},
		"B":   {M: 1, N: 1, K: gemm.MaxSize, LDB: 1 << 33},
		"C":   {M: 2, N: 1, K: 1, LDC: math.MaxInt64},
		"Aux": {M: 4, N: 1, K: 1, Epilogue: gemm.GELUAux, LDAux: 1 << 61},
	} {
		_, _, err := p.Check()
		var refused *gemm.ProblemError
		if assert.ErrorAs(t, err, &refused, name) {
			assert.Equal(t, name, refused.Field)
		}
	}
	_, _, err := gemm.Problem{M: 1, N: 1, K: 1, Batch: gemm.MaxSize, StrideA: 1 << 60}.Check()
	require.Error(t, err)
	_, _, err = gemm.Problem{M: gemm.MaxSize, N: gemm.MaxSize, K: 1}.Check()
	require.Error(t, err, "4 bytes for each of 2^62 elements")
	_, e, err := gemm.Problem{M: 1 << 20, N: 1 << 20, K: 1 << 20}.Check()
	require.NoError(t, err)
	assert.Equal(t, int64(4)<<40, e.C)
}

// The extent of an operand equals the one computed by numbers without a limit, or the operand is refused.
func TestExtentsAgainstLargeNumbers(t *testing.T) {
	far := []int64{1, 3, math.MaxInt64}
	for _, part := range []int64{2, 4, 8} {
		far = append(far, math.MaxInt64/part-3, math.MaxInt64/part-1, math.MaxInt64/part, math.MaxInt64/part+1, math.MaxInt64/part*(part-1))
	}
	for _, ld := range far {
		for _, stride := range far {
			for shape := range 3 * 3 * 2 {
				p := gemm.Problem{M: int64(shape%3) + 1, Batch: int64(shape/3%3) + 1, K: 1 + 2*int64(shape/9), N: 1, LDA: ld, StrideA: stride}
				if ld < p.K {
					continue
				}
				want := new(big.Int).Mul(big.NewInt(p.M-1), big.NewInt(ld))
				want.Add(want, new(big.Int).Mul(big.NewInt(p.Batch-1), big.NewInt(stride)))
				want.Add(want, big.NewInt(p.K)).Mul(want, big.NewInt(4))
				_, e, err := p.Check()
				if !want.IsInt64() {
					var refused *gemm.ProblemError
					require.ErrorAs(t, err, &refused, "%+v", p)
					assert.Equal(t, "A", refused.Field, "%+v", p)
					continue
				}
				require.NoError(t, err, "%+v", p)
				assert.Equal(t, want.Int64(), e.A, "%+v", p)
			}
		}
	}
}

// Random shapes are refused, or touch exactly the memory of the definition.
func FuzzCheck(f *testing.F) {
	f.Add(int64(3), int64(4), int64(5), int64(5), int64(2), int64(1))
	f.Add(int64(math.MaxInt32), int64(math.MaxInt32), int64(math.MaxInt32), int64(math.MaxInt64), int64(math.MaxInt32), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, m, n, k, ld, batch, stride int64) {
		p, e, err := gemm.Problem{M: m, N: n, K: k, LDA: ld, LDB: ld, LDC: ld, Batch: batch, StrideA: stride, StrideB: stride, StrideC: stride}.Check()
		if err != nil {
			return
		}
		for _, bytes := range []int64{e.A, e.B, e.C} {
			require.GreaterOrEqual(t, bytes, int64(0))
		}
		if !p.Empty() {
			require.GreaterOrEqual(t, e.C/4, p.M*p.N)
		}
	})
}
