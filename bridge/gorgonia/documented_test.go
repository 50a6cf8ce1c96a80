package gorgonia_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docs/porting.md has a part of the example.
func TestTheDocumentedExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/porting.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "## Gorgonia\n")
	require.True(t, found)
	_, rest, found := strings.Cut(section, "```go\n")
	require.True(t, found)
	block, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	assert.Contains(t, string(source), block)
}
