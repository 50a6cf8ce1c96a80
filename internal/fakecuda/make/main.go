// Command make builds the fake libcuda into a folder, for programs that are linked with it: see fakecuda.Build. Where
// there is no C compiler it says so, builds nothing, and succeeds.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-vram/vram/internal/fakecuda"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("fakecuda: %d arguments, want one: the folder", len(arguments))
	}
	dir := arguments[0]
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, "libcuda.so.1")); err != nil { // an older one must not pass for this one
		return err
	}
	_, err := fakecuda.Build(dir)
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		fmt.Fprintln(os.Stderr, err)
		return nil
	}
	return err
}
