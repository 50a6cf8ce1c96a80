// Package packed reads compressed texts of PTX that are embedded in the program, and describes the sources of such texts.
//
// # Concurrency properties
//
// The package has no state.
package packed

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"strconv"
)

// Source is a source with the options of one text.
type Source struct {
	Name    string   // of the text's file
	File    string   // in the folder of the sources
	Defines []string // NAME=VALUE
	Command []string // Compiler's
}

// Compiler is the command that compiles a source to PTX for every GPU of a compute capability and later, or for that one alone.
func Compiler(capability int, only bool) []string {
	architecture, version := "sm_"+strconv.Itoa(capability), "+ptx70"
	if only {
		architecture, version = architecture+"a", "+ptx80"
	}
	return []string{
		"clang-19", "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=" + architecture, "-nocudainc", "-nocudalib", "-O3", "-S", "-std=c++17",
		"-Xclang", "-target-feature", "-Xclang", version, "-Wall", "-Wno-unused-function",
	}
}

// Text returns the contents of ptx/NAME.ptx.gz.
func Text(files fs.FS, name string) (string, error) {
	compressed, err := fs.ReadFile(files, "ptx/"+name+".ptx.gz")
	if err != nil {
		return "", err
	}
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(text), nil
}
