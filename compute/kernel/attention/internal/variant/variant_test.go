package variant

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/kept"
)

var update = flag.Bool("update", false, "write testdata/variants.txt again")

// The variants are measured knowledge: testdata has each with the numbers of its launch and the way of compiling it, so that a
// change of one is seen.
func TestVariants(t *testing.T) {
	const file = "testdata/variants.txt"
	var text strings.Builder
	sources := Sources()
	for i, v := range All() {
		s := sources[i]
		fmt.Fprintf(&text, "%s: %s %s %d, kernels %s of %s, %d rows, %d streamed, %d threads, %d shared bytes\n\t%s\n\t%s\n",
			s.Name, v.Pass, v.Type, v.Dim, strings.Join(v.Kernels(), " "), s.File, v.Rows, v.Streamed, v.Threads, v.SharedBytes,
			strings.Join(s.Defines, " "), strings.Join(s.Command, " "))
	}
	kept.Text(t, *update, file, text.String())
}

// Each variant can be launched: its threads are whole warps, or whole warpgroups, and its shared memory is within the limits of
// a block where it runs, and of a multiprocessor that it was measured on for as many blocks as its registers are bounded for. Each
// key has one.
func TestVariantsFitDevices(t *testing.T) {
	const reserved, multiprocessor = 1 << 10, 228 << 10 // bytes that the driver takes of each block, and bytes of a multiprocessor
	keys := map[Key]bool{}
	for _, v := range All() {
		assert.False(t, keys[v.Key], "two are %s", v.Name)
		keys[v.Key] = true
		assert.LessOrEqual(t, v.Threads, 1024, v.Name)
		block, group := 163<<10, 32
		if v.Streamed > 0 {
			block, group = 227<<10, 128
		}
		assert.Zero(t, v.Threads%group, v.Name)
		assert.LessOrEqual(t, v.SharedBytes, block, v.Name)
		blocks := 1
		for _, d := range v.source.Defines {
			_, _ = fmt.Sscanf(d, "BLOCKS=%d", &blocks) // no other macro matches
		}
		assert.LessOrEqual(t, blocks*(v.SharedBytes+reserved), multiprocessor, v.Name)
	}
	for _, of := range []string{"bf16", "f16"} {
		for _, dim := range []int{64, 128} {
			for _, p := range []Pass{Forward, Decoding, Queries, Keys, GroupForward, GroupQueries, GroupKeys} {
				assert.True(t, keys[Key{p, of, dim}], "%s of %s and %d", p, of, dim)
			}
		}
	}
}
