// Command yields writes the source of packages with a yield before each use of an atomic variable into a folder, with an overlay for the go
// command, whose name it prints: package lab/mutate.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-vram/vram/lab/mutate"
	"github.com/go-vram/vram/lab/trial"
)

func main() {
	into := flag.String("into", "", "the folder, which is made")
	flag.Parse()
	overlay, err := write(*into, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "yields:", err)
		os.Exit(1)
	}
	fmt.Println(overlay)
}

func write(into string, packages []string) (string, error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	folder, err := filepath.Abs(into)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // others may read source
		return "", err
	}
	program, err := mutate.Load(context.Background(), root, packages...)
	if err != nil {
		return "", err
	}
	texts, err := program.Yields(nil)
	if err != nil {
		return "", err
	}
	return trial.Overlay(folder, texts)
}
