package fakenvml

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-vram/vram/internal/fakecuda"
)

//go:embed source/fakenvml.c
var source []byte

// Build writes the library into dir, and returns its path. It leaves out the symbols that hidden names. Each file that is loaded has state of
// its own. Errors: fakecuda.ErrNoCompiler, a *fakecuda.BuildError, or errors of writing files.
func Build(dir string, hidden ...string) (string, error) {
	compiler, err := fakecuda.FindCompiler()
	if err != nil {
		return "", err
	}
	const file = "fakenvml.c"
	if err := os.WriteFile(filepath.Join(dir, file), source, 0o600); err != nil {
		return "", fmt.Errorf("fakenvml: %w", err)
	}
	flags := []string{
		"-std=gnu11", "-O0", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wl,-Bsymbolic", "-Wl,-z,nodelete",
	}
	content, err := fakecuda.Compile(compiler, dir, source, slices.Concat(flags, fakecuda.Hide(hidden), []string{file})...)
	if err != nil {
		return "", err
	}
	library := filepath.Join(dir, "libnvidia-ml.so.1")
	if err := os.WriteFile(library, content, 0o755); err != nil {
		return "", fmt.Errorf("fakenvml: %w", err)
	}
	return library, nil
}
