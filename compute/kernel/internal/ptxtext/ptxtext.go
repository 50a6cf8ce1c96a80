// Package ptxtext compiles CUDA C++ to PTX with clang, and reports whether embedded texts match their sources. It is for tests
// and the commands that make the files.
//
// # Concurrency properties
//
// Nothing here changes. Compile runs a compiler, and may be called from any goroutine. Write is for one goroutine.
package ptxtext

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-vram/vram/compute/kernel/internal/packed"
)

// Compile compiles a source to PTX without its comments. Its error has the compiler's output.
func Compile(sourceDir string, s packed.Source) ([]byte, error) {
	command := s.Command
	for _, d := range s.Defines {
		command = append(command, "-D"+d)
	}
	command = append(command, filepath.Join(sourceDir, s.File), "-o", "-")
	run := exec.Command(command[0], command[1:]...)
	var output bytes.Buffer
	run.Stderr = &output
	text, err := run.Output()
	if err != nil || output.Len() > 0 {
		return nil, fmt.Errorf("%s: %w\n%s", s.Name, err, output.String())
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
	version, err := exec.Command("clang-19", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ptxtext: %w", err)
	}
	first, _, _ := strings.Cut(string(version), "\n")
	return first, nil
}

// Stamp is a sum over files, which sources include or are, and the way of compiling each source.
func Stamp(sources fs.FS, files []string, all []packed.Source) (string, error) {
	sum := sha256.New()
	for _, name := range files {
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(sum, "%s %d\n", name, len(text)) // a hash takes all
		sum.Write(text)
	}
	for _, s := range all {
		_, _ = fmt.Fprintln(sum, s.Name, s.File, s.Defines, s.Command)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Write compiles the sources of a package in its folder source, and replaces the texts in its folder ptx, with a file that has
// the stamp and the compiler. root: the folder that names of files are relative to. It returns the bytes of all texts.
func Write(house, root string, files []string, all []packed.Source) (int, error) {
	texts, total := map[string][]byte{}, 0 // by file: nothing is replaced before everything is compiled
	for _, s := range all {
		text, err := Compile(filepath.Join(house, "source"), s)
		if err != nil {
			return 0, err
		}
		var to bytes.Buffer
		w, err := gzip.NewWriterLevel(&to, gzip.BestCompression)
		if err != nil {
			return 0, err
		}
		if _, err := w.Write(text); err != nil {
			return 0, err
		}
		if err := w.Close(); err != nil {
			return 0, err
		}
		total += to.Len()
		texts[filepath.Join(house, "ptx", s.Name+".ptx.gz")] = to.Bytes()
	}
	old, err := filepath.Glob(filepath.Join(house, "ptx", "*.ptx.gz"))
	if err != nil {
		return 0, err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return 0, err
		}
	}
	for file, text := range texts {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return 0, err
		}
	}
	stamp, err := Stamp(os.DirFS(root), files, all)
	if err != nil {
		return 0, err
	}
	version, err := CompilerVersion()
	if err != nil {
		return 0, err
	}
	return total, os.WriteFile(filepath.Join(house, "ptx", "made"), fmt.Appendf(nil, "%s\n%s\n", stamp, version), 0o600)
}
