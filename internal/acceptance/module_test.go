package acceptance_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// moduleRoot is the folder of the module, seen from this package.
const moduleRoot = "../.."

// inModule returns the path of a file of the module.
func inModule(elements ...string) string {
	return filepath.Join(append([]string{moduleRoot}, elements...)...)
}

// filesOf returns the texts of the files whose names match, by name, without hidden folders.
func filesOf(t *testing.T, match func(path string) bool) map[string]string {
	t.Helper()
	files := map[string]string{}
	module := os.DirFS(moduleRoot)
	require.NoError(t, fs.WalkDir(module, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir() && match(path):
			text, err := fs.ReadFile(module, path)
			files[path] = string(text)
			return err
		}
		return nil
	}))
	return files
}

func pages(t *testing.T) map[string]string {
	t.Helper()
	found := filesOf(t, func(path string) bool { return filepath.Ext(path) == ".md" })
	require.Contains(t, found, "README.md")
	require.Contains(t, found, filepath.Join("docs", "conformance.md"))
	return found
}
