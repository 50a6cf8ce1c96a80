package trace

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed data/*.csv.gz
var embedded embed.FS

// Embedded lists the names of the traces that are part of the program, in alphabetical order. They
// were recorded on an NVIDIA H200 under PyTorch 2.11: training of GPT-2 and of ResNet-50, and a
// pipeline of four stages with a stream each.
func Embedded() []string {
	files, err := embedded.ReadDir("data")
	if err != nil {
		return nil // cannot be: the directory is part of the program
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, baseName(f.Name()))
	}
	return names
}

// Open reads the trace in the file called name or, where there is no such file, the embedded trace
// of that name. Errors: ErrUnknown (wrapped, with the embedded names), the error of opening the file,
// or a *ParseError.
func Open(name string) (*Trace, error) {
	file, err := openFile(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return Read(name, file)
}

func openFile(name string) (io.ReadCloser, error) {
	file, err := os.Open(name)
	if err == nil {
		return file, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if slices.Contains(Embedded(), name) {
		return embedded.Open("data/" + name + ".csv.gz")
	}
	return nil, fmt.Errorf("%s: %w (embedded: %s)", name, ErrUnknown, strings.Join(Embedded(), ", "))
}

// baseName returns the name of a trace: the file's name without directory, .gz and .csv.
func baseName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
}
