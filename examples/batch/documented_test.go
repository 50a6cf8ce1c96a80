package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/examples/internal/command"
)

// docs/examples.md has what the program prints on the simulated device, but for its times.
func TestTheDocumentedOutput(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	page, err := os.ReadFile("../../docs/examples.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^│ (one by one|in batches) (│ +\d+ ){3}│`)
	var stdout, stderr bytes.Buffer
	require.Equal(t, command.OK, run(t.Context(), []string{"-driver", "sim"}, &stdout, &stderr), "%s%s", &stdout, &stderr)
	want := rows.FindAllString(string(page), -1)
	assert.Len(t, want, 2)
	assert.Equal(t, want, rows.FindAllString(stdout.String(), -1))
}
