package fakecublaslt

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-vram/vram/internal/fakecuda"
)

//go:embed source/fakecublaslt.c
var source []byte

// mostPathBytes bounds the path of the fake driver: Linux takes no longer one.
const mostPathBytes = 4096

// Build writes the library into dir, and returns its path. libcuda is the path of the fake driver on which it works. The first
// call with the same compiler compiles; later ones only put another path into the same bytes. Errors: fakecuda.ErrNoCompiler,
// a *fakecuda.BuildError, or those of writing files.
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
	if len(libcuda) >= mostPathBytes {
		return "", errors.New("fakecublaslt: the path of the driver is too long")
	}
	library := filepath.Join(dir, "libcublasLt.so.13")
	place := bytes.Repeat([]byte("@"), mostPathBytes)
	key := strings.Join(compiler, " ")
	content, ok := compiled.Load(key)
	if !ok {
		var err error
		if content, err = compile(compiler, dir, library, string(place)); err != nil {
			return "", err
		}
		compiled.Store(key, content)
	}
	path := append([]byte(libcuda), make([]byte, mostPathBytes-len(libcuda))...)
	written := bytes.Replace(content.([]byte), place, path, 1) //nolint:forcetypeassert // Build alone stores there
	if err := os.WriteFile(library, written, 0o755); err != nil {
		return "", fmt.Errorf("fakecublaslt: %w", err)
	}
	return library, nil
}

// compiled has the contents of libraries by compiler.
var compiled sync.Map //nolint:gochecknoglobals // what the compiler would write again

// compile compiles the source in dir and returns the library, with a place for the path of the driver.
func compile(compiler []string, dir, library, place string) ([]byte, error) {
	file := filepath.Join(dir, "fakecublaslt.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return nil, fmt.Errorf("fakecublaslt: %w", err)
	}
	command := exec.Command(compiler[0], append(compiler[1:], "-std=gnu11", "-O1", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra",
		fmt.Sprintf("-DLIBCUDA=%q", place), "-Wl,-Bsymbolic", "-Wl,-z,nodelete", "-o", library, file, "-ldl", "-lm")...)
	if output, err := command.CombinedOutput(); err != nil {
		return nil, &fakecuda.BuildError{Command: command.String(), Output: string(output), Err: err}
	}
	content, err := os.ReadFile(library)
	if err != nil {
		return nil, fmt.Errorf("fakecublaslt: %w", err)
	}
	return content, nil
}
