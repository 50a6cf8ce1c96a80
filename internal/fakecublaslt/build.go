package fakecublaslt

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-vram/vram/internal/fakecuda"
)

//go:embed source/fakecublaslt.c
var source []byte

// mostPathBytes bounds the path of the fake driver: Linux takes no longer one.
const mostPathBytes = 4096

// Build writes the library into dir, and returns its path. libcuda is the path of the fake driver on which it works, which it puts into the
// bytes that the compiler made. Errors: fakecuda.ErrNoCompiler, a *fakecuda.BuildError, or errors of writing files.
func Build(dir, libcuda string) (string, error) {
	compiler, err := fakecuda.FindCompiler()
	if err != nil {
		return "", err
	}
	if len(libcuda) >= mostPathBytes {
		return "", errors.New("fakecublaslt: the path of the driver is too long")
	}
	const file = "fakecublaslt.c"
	if err := os.WriteFile(filepath.Join(dir, file), source, 0o600); err != nil {
		return "", fmt.Errorf("fakecublaslt: %w", err)
	}
	place := strings.Repeat("@", mostPathBytes)
	content, err := fakecuda.Compile(compiler, dir, source, "-std=gnu11", "-O1", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden",
		"-Wall", "-Wextra", fmt.Sprintf("-DLIBCUDA=%q", place), "-Wl,-Bsymbolic", "-Wl,-z,nodelete", file, "-ldl", "-lm")
	if err != nil {
		return "", err
	}
	path := append([]byte(libcuda), make([]byte, mostPathBytes-len(libcuda))...)
	library := filepath.Join(dir, "libcublasLt.so.13")
	if err := os.WriteFile(library, bytes.Replace(content, []byte(place), path, 1), 0o755); err != nil {
		return "", fmt.Errorf("fakecublaslt: %w", err)
	}
	return library, nil
}
