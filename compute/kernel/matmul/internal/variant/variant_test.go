package variant

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		assert.Equal(t, v.Name, s.Name)
		fmt.Fprintf(&text, "%s: %s of %s, tile %dx%dx%d, %d threads, %d shared bytes, capability %d, only %t, bulk %t, matrix units %t\n\t%s\n\t%s\n",
			s.Name, strings.Join(v.Kernels, " "), s.File, v.TileM, v.TileN, v.TileK, v.Threads, v.SharedBytes, v.Capability, v.Only, v.Bulk,
			v.MatrixUnits(), strings.Join(s.Defines, " "), strings.Join(s.Command, " "))
	}
	kept.Text(t, *update, file, text.String())
}

// macro returns the number of a macro of a variant, or 0.
func macro(t *testing.T, v Variant, name string) (number int) {
	t.Helper()
	for _, d := range v.Defines {
		if of, text, _ := strings.Cut(d, "="); of == name {
			var err error
			number, err = strconv.Atoi(text)
			require.NoError(t, err)
		}
	}
	return number
}

// Each variant can be launched: warps divide its tile, its threads are whole warps but for the smallest tile, its shared memory
// is within the limit of a block where it runs, and as many of its blocks as its registers are bounded for are within the limits
// of a multiprocessor that they were measured on.
func TestVariantsFitDevices(t *testing.T) {
	limits := map[int]int{70: 48 << 10, 80: 163 << 10, 90: 227 << 10} // of a block, by the least capability
	const (
		most               = 1024               // threads of a block
		reserved, measured = 1 << 10, 228 << 10 // bytes that the driver takes of each block, and bytes of a multiprocessor
	)
	names := map[string]bool{}
	for _, v := range All() {
		assert.False(t, names[v.Name], "two are %s", v.Name)
		names[v.Name] = true
		assert.True(t, v.Threads%32 == 0 || v.TileM == SmallTile.M, v.Name)
		assert.LessOrEqual(t, v.Threads, most, v.Name)
		assert.LessOrEqual(t, v.SharedBytes, limits[v.Capability], v.Name)
		blocks := max(macro(t, v, "BLOCKS"), 1)
		assert.LessOrEqual(t, blocks*(v.SharedBytes+reserved), measured, v.Name)
		assert.LessOrEqual(t, blocks*v.Threads, 2*most, v.Name)
		if rows, columns := macro(t, v, "WARP_M"), macro(t, v, "WARP_N"); rows > 0 {
			assert.Zero(t, v.TileM%rows, v.Name)
			assert.Zero(t, v.TileN%columns, v.Name)
			assert.Equal(t, v.TileM/rows*(v.TileN/columns)*macro(t, v, "SLICES")*32, v.Threads, v.Name)
		}
		if rows, columns := macro(t, v, "THREAD_M"), macro(t, v, "THREAD_N"); rows > 0 {
			assert.Equal(t, v.TileM*v.TileN, rows*columns*v.Threads, v.Name)
		}
	}
}

// A text for one compute capability is compiled for it alone.
func TestCapabilities(t *testing.T) {
	for i, s := range Sources() {
		v := All()[i]
		architecture := "--cuda-gpu-arch=sm_" + strconv.Itoa(v.Capability)
		if v.Only {
			architecture += "a"
		}
		assert.Contains(t, s.Command, architecture, v.Name)
	}
}
