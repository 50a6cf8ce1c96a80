package attention

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/attention/internal/variant"
	"github.com/go-vram/vram/compute/kernel/internal/ptxtext"
	tree "github.com/go-vram/vram/compute/ptx"
)

// The compiled kernels match the sources: make kernels.
func TestCompiledKernelsMatchTheirSources(t *testing.T) {
	t.Parallel()
	made, err := compiled.ReadFile("ptx/made")
	require.NoError(t, err)
	stamp, version, _ := strings.Cut(strings.TrimSpace(string(made)), "\n")
	if _, err := os.Stat("source"); err == nil { // a test that was carried elsewhere has none
		want, err := ptxtext.Stamp(os.DirFS(".."), variant.Files(), variant.Sources())
		require.NoError(t, err)
		assert.Equal(t, want, stamp, "make kernels")
	}
	for _, v := range variant.All() {
		text, err := ptx(v.Name)
		require.NoError(t, err)
		for _, k := range v.Kernels() {
			assert.Contains(t, text, ".entry "+k+"(")
		}
		assert.NotContains(t, text, ".local", "%s keeps registers in memory", v.Name)
	}
	have, err := ptxtext.CompilerVersion()
	if err != nil || have != version {
		t.Logf("not compiled again: compiled by %s, here is %q", version, have)
		return
	}
	sources := variant.Sources()[:7] // one of each pass: a second each
	if testing.Short() {
		sources = sources[:1] // the stamp covers the others
	}
	for _, s := range sources {
		want, err := ptxtext.Compile("source", s)
		require.NoError(t, err)
		text, err := ptx(s.Name)
		require.NoError(t, err)
		assert.True(t, string(want) == text, "%s: make kernels", s.Name)
	}
}

// No kernel has a pointer of unknown origin but for tensor maps, and each reads and writes the operands that Go declares.
func TestUsesOfCompiledKernels(t *testing.T) {
	t.Parallel()
	const read, written = "r", "w"
	want := map[string]string{
		"forward": "rrrwwrrrr", "decoding": "rrrwwrrrrww", "combine": "wwrrr",
		"queries": "rrrrrrwrr", "keys": "rrrrrrwwrr", "delta": "rrwr",
		// Maps, and memory of which the text does not say whether a map describes it.
		"group_forward": "mmm??", "group_queries": "mmmmr?", "group_keys": "mmmmm??", "group_numbers": "rrrw",
	}
	for _, v := range variant.All() {
		text, err := ptx(v.Name)
		require.NoError(t, err)
		m, err := tree.Parse(text)
		require.NoError(t, err)
		for _, k := range v.Kernels() {
			var got strings.Builder
			group := v.Streamed > 0
			for _, u := range tree.Uses(m, m.Function(k)) {
				switch {
				case group && strings.HasSuffix(u.Unknown, "it is a tensor map"):
					got.WriteString("m")
					continue
				case group && strings.HasSuffix(u.Unknown, "the memory of a tensor is not known"):
					got.WriteString("?")
					continue
				}
				assert.Empty(t, u.Unknown, k)
				if u.Reads {
					got.WriteString(read)
				}
				if u.Writes {
					got.WriteString(written)
				}
			}
			name, _, _ := strings.Cut(k, "_"+v.Type)
			assert.Equal(t, want[name], got.String(), k)
		}
	}
}
