package main

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/examples/internal/command"
)

// docs/examples.md shows the program's output on the simulated device. Times differ between runs, and so do, by a few, the
// kernels of batches: the places of gradients depend on the time at which earlier memory became free.
func TestTheDocumentedOutput(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	page, err := os.ReadFile("../../docs/examples.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^│ (?:one by one (?:│ +\d+ ){3}│|in batches (?:│ +\d+ ){2}│)`)
	kernels := regexp.MustCompile(`(?m)^│ in batches (?:│ +\d+ ){2}│ +(\d+) │`)
	var stdout, stderr bytes.Buffer
	require.Equal(t, command.OK, run(t.Context(), []string{"-driver", "sim"}, &stdout, &stderr), "%s%s", &stdout, &stderr)
	want := rows.FindAllString(string(page), -1)
	assert.Len(t, want, 2)
	assert.Equal(t, want, rows.FindAllString(stdout.String(), -1))
	for _, text := range []string{string(page), stdout.String()} {
		row := kernels.FindStringSubmatch(text)
		require.Len(t, row, 2, text)
		count, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		assert.InDelta(t, 32, count, 8, "kernels of an update in batches; 148 one by one")
	}
}
