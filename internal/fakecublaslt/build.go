package fakecublaslt

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-vram/vram/internal/fakecuda"
)

//go:embed source/fakecublaslt.c
var source []byte

// Build compiles the library into dir, and returns its path. libcuda is the path of the fake driver on which it works. Errors:
// fakecuda.ErrNoCompiler, a *fakecuda.BuildError, or errors of writing files.
func Build(dir, libcuda string) (string, error) {
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
	file := filepath.Join(dir, "fakecublaslt.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", fmt.Errorf("fakecublaslt: %w", err)
	}
	library := filepath.Join(dir, "libcublasLt.so.13")
	command := exec.Command(compiler[0], append(compiler[1:], "-std=gnu11", "-O1", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra",
		fmt.Sprintf("-DLIBCUDA=%q", libcuda), "-Wl,-Bsymbolic", "-Wl,-z,nodelete", "-o", library, file, "-ldl", "-lm")...)
	if output, err := command.CombinedOutput(); err != nil {
		return "", &fakecuda.BuildError{Command: command.String(), Output: string(output), Err: err}
	}
	return library, nil
}
