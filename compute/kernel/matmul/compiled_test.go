package matmul

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/internal/ptxtext"
	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
	tree "github.com/go-vram/vram/compute/ptx"
)

// The compiled kernels are of the sources as they are: make kernels.
func TestCompiledKernelsAreOfTheirSources(t *testing.T) {
	made, err := compiled.ReadFile("ptx/made")
	require.NoError(t, err)
	stamp, version, _ := strings.Cut(strings.TrimSpace(string(made)), "\n")
	if _, err := os.Stat("source"); err == nil { // a test that was carried elsewhere has none
		want, err := ptxtext.Stamp(os.DirFS("source"), variant.Files(), variant.Sources())
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
		want, err := ptxtext.Compile("source", variant.Sources()[i])
		require.NoError(t, err)
		text, err := ptx(all[i].Name)
		require.NoError(t, err)
		assert.True(t, string(want) == text, "%s: make kernels", all[i].Name)
	}
}

// A and B, the bias and the parts that are summed are read, C and aux are read and written, the parts of a product are written, and no
// pointer is unknown. Bulk copies read A and B by tensor maps, whose memory is not known: so all else that is only written may be read. The short
// form has every third source.
func TestUsesOfCompiledKernels(t *testing.T) {
	t.Parallel()
	for i, v := range variant.All() {
		if testing.Short() && i%3 != 0 {
			continue
		}
		text, err := ptx(v.Name)
		require.NoError(t, err)
		m, err := tree.Parse(text)
		require.NoError(t, err)
		for _, k := range v.Kernels {
			uses := tree.Uses(m, m.Function(k))
			var got []string
			for _, u := range uses {
				got = append(got, fmt.Sprintf("%v %v %s", u.Reads, u.Writes, u.Unknown[strings.LastIndex(u.Unknown, ": ")+1:]))
			}
			const read, written, both = "true false ", "false true ", "true true "
			want := map[int][]string{
				6: {read, read, both, read, both, written},
				4: {both, read, both, read}, // the sum of the parts
				2: {read, written},          // a copy in another type
			}
			if v.Bulk {
				const mapped = both + " it is a tensor map"
				want[6] = []string{mapped, mapped, both, read, both, both + " the memory of a tensor is not known"}
			}
			assert.Equal(t, want[len(got)], got, k)
		}
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
