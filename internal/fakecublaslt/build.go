package fakecublaslt

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/go-vram/vram/internal/fakecuda"
)

//go:embed source/fakecublaslt.c
var source []byte

// mostPathBytes bounds the path of the fake driver: Linux takes no longer one.
const mostPathBytes = 4096

// Build writes the library into dir, and returns its path. libcuda is the path of the fake driver on which it works. It
// compiles unless the call before had the same compiler: then it puts another path into the same bytes. Errors:
// fakecuda.ErrNoCompiler, a *fakecuda.BuildError, or errors of writing files.
func Build(dir, libcuda string) (string, error) {
	compiler, err := fakecuda.FindCompiler()
	if err != nil {
		return "", err
	}
	if len(libcuda) >= mostPathBytes {
		return "", errors.New("fakecublaslt: the path of the driver is too long")
	}
	library := filepath.Join(dir, "libcublasLt.so.13")
	place := bytes.Repeat([]byte("@"), mostPathBytes)
	key := strings.Join(compiler, " ")
	last := latest.Load()
	if last == nil || last.key != key {
		content, err := compile(compiler, dir, library, string(place))
		if err != nil {
			return "", err
		}
		last = &build{key, content}
		latest.Store(last)
	}
	path := append([]byte(libcuda), make([]byte, mostPathBytes-len(libcuda))...)
	written := bytes.Replace(last.content, place, path, 1)
	if err := os.WriteFile(library, written, 0o755); err != nil {
		return "", fmt.Errorf("fakecublaslt: %w", err)
	}
	return library, nil
}

// build is a library that was compiled.
type build struct {
	key     string // the compiler
	content []byte // with a place for the path
}

// latest is the build that the process made last.
var latest atomic.Pointer[build] //nolint:gochecknoglobals // The compiler would write it again: made on first use.

// compile compiles the source in dir and returns the library, with a place for the path of the driver.
func compile(compiler []string, dir, library, place string) ([]byte, error) {
	file := filepath.Join(dir, "fakecublaslt.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return nil, fmt.Errorf("fakecublaslt: %w", err)
	}
	return fakecuda.Compile(compiler, library, "-std=gnu11", "-O1", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra",
		fmt.Sprintf("-DLIBCUDA=%q", place), "-Wl,-Bsymbolic", "-Wl,-z,nodelete", file, "-ldl", "-lm")
}
