package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/examples/internal/command"
)

// docs/examples.md has a command and its output: the losses, digit by digit, and the wrong readings. Times and allocations
// differ between runs.
func TestTheDocumentedOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("a whole training takes 6 seconds") //nolint:forbidigo // make nightly runs it
	}
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	page, err := os.ReadFile("../../docs/examples.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)## Digits\n.*?`go run ./examples/digits (.*?)`.*?```text\n(.*?)```").FindStringSubmatch(string(page))
	require.NotNil(t, block)
	var stdout, stderr bytes.Buffer
	require.Equal(t, command.OK, run(t.Context(), strings.Fields(block[1]), &stdout, &stderr), "%s%s", &stdout, &stderr)
	differs := regexp.MustCompile(`(?m), \d+ images/s; .*$|^device memory: .*$`)
	assert.Equal(t, differs.ReplaceAllString(block[2], ""), differs.ReplaceAllString(stdout.String(), ""))
}
