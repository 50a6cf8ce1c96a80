package matmul_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda/gemm"
)

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// kinds are the ways to multiply that have kernels of their own.
var kinds = []gemm.Problem{
	{},
	{Precision: gemm.TF32},
	{Precision: gemm.TF32x3},
	{Precision: gemm.RoundedBF16},
	{Precision: gemm.RoundedF16},
	{In: gemm.BFloat16, Out: gemm.BFloat16},
	{In: gemm.BFloat16},
	{In: gemm.Float16, Out: gemm.Float16},
	{In: gemm.Float16},
	{In: gemm.Float64, Out: gemm.Float64},
}

// randomProblem has sizes at which kernels have edges, and no more multiplications than a test has time for.
func randomProblem(random *rand.Rand) gemm.Problem {
	p := kinds[random.IntN(len(kinds))]
	size := func() int64 {
		switch random.IntN(4) {
		case 0:
			return int64(random.IntN(5))
		case 1:
			return int64(1)<<random.IntN(9) + int64(random.IntN(3)) - 1
		case 2:
			return 8 * int64(1+random.IntN(16))
		}
		return int64(random.IntN(largestSize))
	}
	for {
		p.M, p.N, p.K = size(), size(), size()
		if random.IntN(6) == 0 {
			p.K *= 16
		}
		p.Batch = []int64{1, 1, 1, 2, 3}[random.IntN(5)]
		if p.M*p.N*p.K*p.Batch <= mostWork {
			break
		}
	}
	p.TransposeA, p.TransposeB = random.IntN(2) == 0, random.IntN(2) == 0
	gap := func(columns int64) int64 {
		switch random.IntN(3) {
		case 0:
			return max(columns, 1) + int64(random.IntN(5))
		case 1:
			return max((columns+7)/8*8, 8) + 8*int64(random.IntN(3))
		}
		return 0
	}
	rowsA, rowsB, columnsA, columnsB := p.M, p.K, p.K, p.N
	if p.TransposeA {
		rowsA, columnsA = p.K, p.M
	}
	if p.TransposeB {
		rowsB, columnsB = p.N, p.K
	}
	p.LDA, p.LDB, p.LDC, p.LDAux = gap(columnsA), gap(columnsB), gap(p.N), gap(p.N)
	if p.Batch > 1 {
		filled := p.Filled()
		p.StrideA, p.StrideB = rowsA*filled.LDA+int64(random.IntN(2)*3), rowsB*filled.LDB+int64(random.IntN(2)*8)
		if random.IntN(4) == 0 {
			p.StrideB = 0
		}
	}
	p.Bias = random.IntN(3) == 0
	if p.In != gemm.Float64 {
		p.Epilogue = []gemm.Epilogue{gemm.None, gemm.None, gemm.None, gemm.GELU, gemm.GELUAux, gemm.GELUGradient}[random.IntN(6)]
	}
	return p
}

// Own kernels compute random problems within the promised error, and change nothing else.
func TestRandomProblems(t *testing.T) {
	r := newRig(t)
	ways := map[string]bool{}
	for seed := range uint64(programs) {
		random := newRandom(seed)
		p := randomProblem(random)
		alpha, beta := 1.0, 0.0
		if random.IntN(2) == 0 {
			alpha, beta = 1.5, -0.5
		}
		path := r.multiply(random, p, alpha, beta, int64(random.IntN(2)*random.IntN(5)), matmul.Own)
		kind, _, _ := strings.Cut(path.String(), "_")
		ways[kind] = true
	}
	assert.Subset(t, keys(ways), []string{"tensor", "staged", "plain", "sum", "dot", "columns"})
}

func keys(m map[string]bool) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// Every kernel computes: each tile and transposition, with edges and without. The short form has each shape with one or two
// transpositions.
func TestEveryKernel(t *testing.T) {
	r := newRig(t)
	random := newRandom(7)
	seen, parts := map[string]bool{}, 0
	for _, kind := range kinds {
		for transposed := range 4 {
			for i, shape := range [][3]int64{{70, 65, 40}, {64, 64, 800}, {132, 130, 33}, {1, 67, 300}, {67, 1, 300}} {
				if testing.Short() && (i+transposed)%3 != 0 {
					continue
				}
				p := kind
				p.M, p.N, p.K = shape[0], shape[1], shape[2]
				p.TransposeA, p.TransposeB = transposed&1 != 0, transposed&2 != 0
				path := r.multiply(random, p, 1, 0, 0, matmul.Own)
				seen[path.Kernel] = true
				parts += path.Parts - 1
			}
		}
	}
	assert.Positive(t, parts)
	assert.Greater(t, len(seen), 20, "%v", seen)
}

// A known problem is planned again for operands with other alignments.
func TestOneProblemAtTwoPlaces(t *testing.T) {
	r := newRig(t)
	random := newRandom(11)
	for _, offset := range []int64{0, 1, 0} { // elements
		r.multiply(random, gemm.Problem{M: 64, N: 64, K: 64, Precision: gemm.TF32}, 1, 0, offset, matmul.Own)
	}
}

// largestTile is the largest tile of each kind.
const largestTile = "three_128x128|tf32_128x256|f16_128x256|staged"

// tileTranspositions returns how many of the four transpositions large tiles are tested with.
func tileTranspositions() int {
	if testing.Short() {
		return 1
	}
	return 4
}

// So do the larger tiles, with edges, with and without loads of 16 bytes.
func TestEveryTile(t *testing.T) {
	for _, d := range devices(t) {
		random := newRandom(3)
		for i, kind := range kinds {
			if kind.In == gemm.Float64 || i == 3 || i == 4 || i == 6 || i == 8 {
				continue // one tile, or kernels of another kind
			}
			for transposed := range tileTranspositions() {
				p := kind
				p.M, p.N, p.K = d.m, d.n, 20
				p.TransposeA, p.TransposeB = transposed&1 != 0, transposed&2 != 0
				p.Bias = true
				if transposed%2 == 0 {
					p.LDA, p.LDB, p.LDC = 256, 256, 256
				}
				path := d.multiply(random, p, 1, 1, 0, matmul.Own)
				assert.Regexp(t, d.tile, path.Kernel)
			}
		}
	}
}
