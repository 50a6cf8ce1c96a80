//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-vram/vram/internal/fakecuda"
)

// library is the path of the fake that the tests of this process share; "" where there is no C compiler.
var library string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if library = os.Getenv(libraryVariable); library != "" { // a process that asks a part of the questions
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if hardware {
		library = "libcuda.so.1"
		return m.Run()
	}
	library, err = fakecuda.Build(dir)
	if err != nil && !errors.Is(err, fakecuda.ErrNoCompiler) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
