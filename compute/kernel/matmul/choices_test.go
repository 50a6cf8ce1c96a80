package matmul

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/internal/kept"
)

var update = flag.Bool("update", false, "write testdata again")

// devices are one of each capability that choose treats apart, and with few multiprocessors.
var devices = []processor{{40, 75, false}, {108, 80, false}, {72, 86, false}, {132, 90, false}, {132, 90, true}, {8, 90, true}, {148, 100, true}, {0, 89, false}}

// Each choice is measured knowledge: testdata has the launch of products of each kind, by their shapes, transpositions and
// alignments, on several devices, so that a change of one is seen. Each fits its device: its shared memory is within the limit
// of a block, its grid covers the result, its parts cover the sums, and a kernel for some devices alone is on one of those.
func TestChoices(t *testing.T) {
	const file = "testdata/choices.txt"
	var text strings.Builder
	for number, d := range devices {
		for kind, p := range []gemm.Problem{
			{}, {Precision: gemm.TF32}, {Precision: gemm.TF32x3}, {In: gemm.BFloat16}, {In: gemm.Float16, Out: gemm.Float16}, {In: gemm.Float64, Out: gemm.Float64},
		} {
			for n, shape := range [][4]int64{
				{1, 1, 0, 1},
				{1, 100, 70, 1},
				{33, 1, 9000, 2},
				{16, 16, 16, 1},
				{128, 128, 128, 1},
				{129, 128, 128, 1},
				{64, 64, 129, 1},
				{100, 60, 5000, 1},
				{500, 500, 512, 1},
				{512, 512, 4096, 3},
				{768, 768, 8192, 1},
				{1024, 1024, 1024, 1},
				{2048, 2304, 768, 1},
				{4096, 4096, 4096, 1},
				{8, 768, 768, 40},
				{96, 64, 32, 1},
				{130, 260, 96, 1},
				{8192, 16, 70000, 1},
			} {
				p := p
				p.M, p.N, p.K, p.Batch = shape[0], shape[1], shape[2], shape[3]
				p.TransposeA, p.TransposeB = (n+kind)%2 == 1, (n/2+number)%2 == 1
				p.Bias = n%3 == 1
				if p.In != gemm.Float64 {
					p.Epilogue = [...]gemm.Epilogue{gemm.None, gemm.GELU, gemm.GELUAux, gemm.GELUGradient}[n%4]
				}
				p, _, err := p.Check()
				require.NoError(t, err)
				a := aligned
				switch n % 5 {
				case 3:
					a = alignment{b: true, c: true}
				case 4:
					a = alignment{a: true}
				}
				l, err := choose(p, a, d)
				require.NoError(t, err)
				fmt.Fprintf(&text, "%d.%d of %d, %v %v %dx%dx%d, %d times, %s%s: %s of %s, %d blocks of %d with %d bytes, %d parts of %d, %d bytes, flags %#x\n",
					d.capability/10, d.capability%10, d.multiprocessors, p.In, p.Precision, p.M, p.N, p.K, p.Batch, letters(p.TransposeA), letters(p.TransposeB),
					l.kernel, l.variant, l.blocks, l.threads, l.shared, l.parts, l.partK, l.workBytes, l.flags)
				fits(t, p, d, l)
			}
		}
	}
	kept.Text(t, *update, file, text.String())
}

func letters(transposed bool) string { return map[bool]string{false: "n", true: "t"}[transposed] }

func fits(t *testing.T, p Problem, d processor, l launch) {
	t.Helper()
	v, known := variants[l.variant]
	require.True(t, known, l.variant)
	assert.Contains(t, v.Kernels, l.kernel)
	if v.Capability > d.capability { // Multiply refuses it
		return
	}
	assert.True(t, !v.Only || v.Capability == d.capability, "%v on %v: %s", p, d, l.variant)
	assert.True(t, !v.Bulk || d.bulk, "%v on %v: %s", p, d, l.variant)
	assert.LessOrEqual(t, l.shared, routine.MaxSharedBytes(d.capability))
	if l.way == tiles {
		across := (p.M + int64(v.TileM) - 1) / int64(v.TileM)
		down := (p.N + int64(v.TileN) - 1) / int64(v.TileN)
		assert.Equal(t, across*down, l.blocks, "%v on %v: %s", p, d, l.variant)
	}
	assert.GreaterOrEqual(t, int64(l.parts)*l.partK, p.K)
	assert.True(t, p.K == 0 || int64(l.parts-1)*l.partK < p.K, "each part has a sum")
	if l.parts > 1 {
		assert.Equal(t, int64(l.parts)*p.M*p.N*p.Batch*sumType(p.In).Bytes(), l.workBytes)
		assert.LessOrEqual(t, l.parts, maxParts)
		assert.LessOrEqual(t, l.workBytes, int64(maxPartBytes))
	}
}

// A grid has no more blocks than CUDA allows: a product of more tiles is refused.
func TestTooManyTiles(t *testing.T) {
	p, _, err := gemm.Problem{M: 1 << 30, N: 1 << 20, K: 1}.Check()
	require.NoError(t, err)
	var refused *gemm.ProblemError
	_, err = choose(p, aligned, processor{132, 90, true})
	require.ErrorAs(t, err, &refused)
	p.N = 64 // 2^24 tiles
	_, err = choose(p, aligned, processor{132, 90, true})
	require.NoError(t, err)
}
