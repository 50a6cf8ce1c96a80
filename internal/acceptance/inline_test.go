//go:build !race

// The test runs another program: the race detector would only build it again.

package acceptance_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program that imports nothing but vram has the calls of a pair inlined.
func TestPairsAreInlined(t *testing.T) {
	t.Parallel()
	const importer = "github.com/go-vram/vram"
	build := exec.CommandContext(t.Context(), "go", "build", "-gcflags="+importer+"=-m", importer)
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	for _, call := range []string{
		"streams.(*Stream).Alloc", "streams.Buffer.Free",
	} {
		assert.Contains(t, string(output), "inlining call to "+call+"\n")
	}
}
