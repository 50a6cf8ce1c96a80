// Package ptxtext compiles the kernels of package matmul, and reports whether the embedded ones match the sources. It is for
// tests and the command that makes the files.
//
// # Concurrency properties
//
// Nothing here changes. Compile runs a compiler, and may be called from any goroutine.
package ptxtext

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
)

// Compile compiles a variant to PTX without its comments. Its error has the compiler's output.
func Compile(sourceDir string, v variant.Variant) ([]byte, error) {
	command := v.Compiler()
	for _, d := range v.Defines {
		command = append(command, "-D"+d)
	}
	command = append(command, filepath.Join(sourceDir, v.Source), "-o", "-")
	run := exec.Command(command[0], command[1:]...)
	var output bytes.Buffer
	run.Stderr = &output
	text, err := run.Output()
	if err != nil || output.Len() > 0 {
		return nil, fmt.Errorf("%s: %w\n%s", v.Name, err, output.String())
	}
	return bare(text), nil
}

// bare removes comments and empty lines.
func bare(text []byte) []byte {
	var to bytes.Buffer
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "//")
		if line = strings.TrimSpace(line); line != "" {
			to.WriteString(strings.ReplaceAll(line, " \t", " "))
			to.WriteByte('\n')
		}
	}
	return to.Bytes()
}

// CompilerVersion returns the first line of the compiler's version.
func CompilerVersion() (string, error) {
	version, err := exec.Command(variant.All()[0].Compiler()[0], "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ptxtext: %w", err)
	}
	first, _, _ := strings.Cut(string(version), "\n")
	return first, nil
}

// Stamp is a sum over the sources and the way of compiling each variant.
func Stamp(sources fs.FS) (string, error) {
	sum := sha256.New()
	for _, name := range variant.Sources() {
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(sum, "%s %d\n", name, len(text)) // a hash takes all
		sum.Write(text)
	}
	for _, v := range variant.All() {
		_, _ = fmt.Fprintln(sum, v.Name, v.Source, v.Defines, v.Compiler())
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
