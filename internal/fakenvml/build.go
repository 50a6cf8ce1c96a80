package fakenvml

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-vram/vram/internal/fakecuda"
)

//go:embed source/fakenvml.c
var source []byte

// Build writes the library into dir, and returns its path. It leaves out the symbols that hidden names. It compiles unless the call
// before had the same compiler and hidden symbols: then it writes the same bytes again. Each file that is loaded has state of its
// own. Errors: fakecuda.ErrNoCompiler, a *fakecuda.BuildError, or errors of writing files.
func Build(dir string, hidden ...string) (string, error) {
	compiler, err := fakecuda.FindCompiler()
	if err != nil {
		return "", err
	}
	library := filepath.Join(dir, "libnvidia-ml.so.1")
	key := strings.Join(compiler, " ") + "\n" + strings.Join(hidden, " ")
	if last := latest.Load(); last != nil && last.key == key {
		if err := os.WriteFile(library, last.content, 0o755); err != nil {
			return "", fmt.Errorf("fakenvml: %w", err)
		}
		return library, nil
	}
	content, err := compile(compiler, dir, library, hidden)
	if err != nil {
		return "", err
	}
	latest.Store(&build{key, content})
	return library, nil
}

// build is a library that was compiled.
type build struct {
	key     string // the compiler and the hidden symbols
	content []byte
}

// latest is the build that the process made last.
var latest atomic.Pointer[build] //nolint:gochecknoglobals // The compiler would write it again: made on first use.

// compile compiles the source in dir and returns the library.
func compile(compiler []string, dir, library string, hidden []string) ([]byte, error) {
	file := filepath.Join(dir, "fakenvml.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return nil, fmt.Errorf("fakenvml: %w", err)
	}
	flags := []string{
		"-std=gnu11", "-O0", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wl,-Bsymbolic", "-Wl,-z,nodelete",
	}
	return fakecuda.Compile(compiler, library, slices.Concat(flags, fakecuda.Hide(hidden), []string{file})...)
}
