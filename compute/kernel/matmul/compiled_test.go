package matmul

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul/internal/ptxtext"
	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
)

// The compiled kernels are of the sources as they are: make kernels.
func TestCompiledKernelsAreOfTheirSources(t *testing.T) {
	made, err := compiled.ReadFile("ptx/made")
	require.NoError(t, err)
	stamp, version, _ := strings.Cut(strings.TrimSpace(string(made)), "\n")
	if _, err := os.Stat("source"); err == nil { // a test that was carried elsewhere has none
		want, err := ptxtext.Stamp(os.DirFS("source"))
		require.NoError(t, err)
		assert.Equal(t, want, stamp, "make kernels")
	}
	for _, v := range variant.All() {
		text, err := ptx(v.Name)
		require.NoError(t, err)
		for _, k := range v.Kernels {
			assert.Contains(t, text, ".entry "+k+"(", "%s", v.Name)
		}
		assert.False(t, strings.Contains(text, ".local"), "%s keeps registers in memory", v.Name)
	}
	have, err := ptxtext.CompilerVersion()
	if err != nil || have != version {
		t.Logf("not compiled anew: compiled by %s, here is %q", version, have)
		return
	}
	all := variant.All()
	for _, i := range []int{0, 4, 8, 9, len(all) - 1} { // a quarter of a second each
		want, err := ptxtext.Compile("source", all[i])
		require.NoError(t, err)
		text, err := ptx(all[i].Name)
		require.NoError(t, err)
		assert.True(t, string(want) == text, "%s: make kernels", all[i].Name)
	}
}

// The flags have the same numbers in Go and in the sources.
func TestNumbersOfTheSources(t *testing.T) {
	source, err := os.ReadFile("source/finish.h")
	if err != nil {
		return // carried elsewhere
	}
	for text, value := range map[string]uint32{
		"TRANSPOSE_A = 1,": transposeA, "TRANSPOSE_B = 2,": transposeB, "WIDE_A = 4,": wideA, "WIDE_B = 8,": wideB, "ADD_BIAS = 16,": addBias,
		"GELU = 32,": gelu, "KEEP = 64,": keep, "GELU_GRADIENT = 128,": geluGradient, "PARTIAL = 256,": partial, "WIDE_C = 512": wideC,
	} {
		assert.Contains(t, string(source), text)
		assert.Contains(t, text, "= "+strconv.Itoa(int(value)))
	}
}
