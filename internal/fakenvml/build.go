package fakenvml

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
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
	compiler := strings.Fields(os.Getenv("CC"))
	for _, name := range []string{"cc", "gcc", "clang"} {
		if len(compiler) > 0 {
			break
		}
		if path, err := exec.LookPath(name); err == nil {
			compiler = []string{path}
		}
	}
	if len(compiler) == 0 {
		return "", fakecuda.ErrNoCompiler
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
	arguments := slices.Concat(compiler[1:], []string{
		"-std=gnu11", "-O0", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wl,-Bsymbolic", "-Wl,-z,nodelete",
	})
	for _, symbol := range hidden {
		arguments = append(arguments, "-D"+symbol+"=hidden_"+symbol)
	}
	command := exec.Command(compiler[0], append(arguments, "-o", library, file)...)
	if output, err := command.CombinedOutput(); err != nil {
		return nil, &fakecuda.BuildError{Command: command.String(), Output: string(output), Err: err}
	}
	content, err := os.ReadFile(library)
	if err != nil {
		return nil, fmt.Errorf("fakenvml: %w", err)
	}
	return content, nil
}
