// Command compile compiles the kernels of package matmul to PTX: make kernels. It runs in the module's root and needs clang-19.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-vram/vram/compute/kernel/matmul/internal/ptxtext"
	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
)

const house = "compute/kernel/matmul"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "compile:", err)
		os.Exit(1)
	}
}

func run() error {
	packed := map[string][]byte{} // by file: nothing is replaced before everything is compiled
	total := 0
	for _, v := range variant.All() {
		text, err := ptxtext.Compile(filepath.Join(house, "source"), v)
		if err != nil {
			return err
		}
		var to bytes.Buffer
		w, err := gzip.NewWriterLevel(&to, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		total += to.Len()
		packed[filepath.Join(house, "ptx", v.Name+".ptx.gz")] = to.Bytes()
	}
	old, err := filepath.Glob(filepath.Join(house, "ptx", "*.ptx.gz"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	for file, text := range packed {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
	}
	stamp, err := ptxtext.Stamp(os.DirFS(filepath.Join(house, "source")))
	if err != nil {
		return err
	}
	version, err := ptxtext.CompilerVersion()
	if err != nil {
		return err
	}
	fmt.Printf("%d variants, %d bytes\n", len(variant.All()), total)
	return os.WriteFile(filepath.Join(house, "ptx", "made"), fmt.Appendf(nil, "%s\n%s\n", stamp, version), 0o600)
}
