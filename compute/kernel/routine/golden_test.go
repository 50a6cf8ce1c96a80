package routine_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/internal/kept"
)

var update = flag.Bool("update", false, "write testdata again")

// plain is a Kernel that prints all its fields.
type plain routine.Kernel

// The first text of each kind is kept, and a sum of each text: a change of one is seen.
func TestTexts(t *testing.T) {
	const sums = "testdata/sums.txt"
	var all strings.Builder
	seen := map[routine.Kind]bool{}
	for _, k := range kernels() {
		text := k.Text()
		fmt.Fprintf(&all, "%x %+v\n", sha256.Sum256([]byte(text)), plain(k))
		if seen[k.Kind] {
			continue
		}
		seen[k.Kind] = true
		path := filepath.Join("testdata", k.Entry()+".ptx")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), text, "%+v", k)
	}
	assert.Len(t, seen, int(routine.AdamWStrided), "each kind has one")
	kept.Text(t, *update, sums, all.String())
}
