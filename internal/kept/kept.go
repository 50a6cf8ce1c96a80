// Package kept compares texts with files that keep them: for tests that see each change of a table.
//
// # Concurrency properties
//
// Nothing here changes. A test calls it from its goroutine.
package kept

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Text requires that a file has a text, and reports the lines that differ. With update it writes the file.
func Text(tb testing.TB, update bool, file, text string) {
	tb.Helper()
	if update {
		require.NoError(tb, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(tb, os.WriteFile(file, []byte(text), 0o600))
	}
	kept, err := os.ReadFile(file) //nolint:gosec // of a test
	require.NoError(tb, err, "run the test with -update")
	was, now := strings.Split(string(kept), "\n"), strings.Split(text, "\n")
	require.Len(tb, now, len(was), "lines of %s: run the test with -update if that is wanted", file)
	for i, line := range now {
		assert.Equal(tb, was[i], line, "%s: run the test with -update if that is wanted", file)
	}
}
