package fakecuda

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

//go:embed source
var source embed.FS

// ErrNoCompiler says that this machine has no C compiler: there is none called cc, gcc or clang, nor the one that the
// environment variable CC names.
var ErrNoCompiler = errors.New("fakecuda: no C compiler")

// soname is the name that the real library has and that gorgonia.org/cu's binaries ask for.
const soname = "libcuda.so.1"

// A BuildError is a compiler that was found and failed.
type BuildError struct {
	Command string // the command line
	Output  string // the compiler's messages
	Err     error
}

// Error includes the compiler's messages.
func (e *BuildError) Error() string {
	return fmt.Sprintf("fakecuda: %s: %v\n%s", e.Command, e.Err, e.Output)
}

// Unwrap returns the failure to run the command.
func (e *BuildError) Unwrap() error { return e.Err }

// Build writes the library into dir, which must exist, and returns its path: dir/libcuda.so.1, with the link dir/libcuda.so
// for linkers and the headers in dir/source/include. It leaves out the symbols that hidden names as they are exported
// ("cuMemCreate", "cuMemAlloc_v2"). The caller owns the files. It compiles, in a second, unless the call before had the same
// compiler and hidden symbols: then it writes the same bytes again. Each file that is loaded has state of its own.
// Errors: ErrNoCompiler, a *BuildError, or errors of writing files.
func Build(dir string, hidden ...string) (string, error) {
	compiler, err := FindCompiler()
	if err != nil {
		return "", err
	}
	if err := writeSource(dir); err != nil {
		return "", fmt.Errorf("fakecuda: writing the source: %w", err)
	}
	library := filepath.Join(dir, soname)
	key := strings.Join(compiler, " ") + "\n" + strings.Join(hidden, " ")
	if last := latest.Load(); last != nil && last.key == key {
		if err := os.WriteFile(library, last.content, 0o755); err != nil {
			return "", fmt.Errorf("fakecuda: %w", err)
		}
	} else {
		content, err := compile(compiler, dir, library, hidden)
		if err != nil {
			return "", err
		}
		latest.Store(&build{key, content})
	}
	link := filepath.Join(dir, "libcuda.so")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("fakecuda: %w", err)
	}
	if err := os.Symlink(soname, link); err != nil {
		return "", fmt.Errorf("fakecuda: %w", err)
	}
	return library, nil
}

// build is a library that was compiled.
type build struct {
	key     string // the compiler and the hidden symbols
	content []byte
}

// latest is the build that the process made last.
var latest atomic.Pointer[build] //nolint:gochecknoglobals // The compiler would write it again: made on first use.

// compile compiles the source in dir and returns the library.
func compile(compiler []string, dir, library string, hidden []string) ([]byte, error) {
	files, err := fs.Glob(source, "source/*.c") // the folder may have files of an earlier version
	if err != nil {
		return nil, fmt.Errorf("fakecuda: finding the source: %w", err)
	}
	for i, file := range files {
		files[i] = filepath.Join(dir, filepath.FromSlash(file))
	}
	return Compile(compiler, library, slices.Concat(flags(dir), Hide(hidden), files, []string{"-ldl"})...)
}

// Compile makes a library by a compiler's command with more arguments, and returns its content. Errors: a *BuildError, or an error of
// reading the library.
func Compile(compiler []string, library string, arguments ...string) ([]byte, error) {
	command := exec.Command(compiler[0], slices.Concat(compiler[1:], arguments, []string{"-o", library})...)
	if output, err := command.CombinedOutput(); err != nil {
		return nil, &BuildError{Command: command.String(), Output: string(output), Err: err}
	}
	content, err := os.ReadFile(library)
	if err != nil {
		return nil, fmt.Errorf("fakecuda: %w", err)
	}
	return content, nil
}

// Hide returns the compiler's arguments that leave out symbols.
func Hide(symbols []string) (arguments []string) {
	for _, symbol := range symbols {
		arguments = append(arguments, "-D"+symbol+"=hidden_"+symbol)
	}
	return arguments
}

// flags returns the compiler's flags. Nothing is optimised: the work is memset and memcpy, and compiling takes half the time.
// -Bsymbolic keeps two copies in one process apart; a library that is never unloaded
// (nodelete) may leave thread-specific data with the threads.
func flags(dir string) []string {
	return []string{
		"-std=c11", "-O0", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden",
		"-I" + filepath.Join(dir, "source", "include"),
		"-Wl,-soname," + soname, "-Wl,-Bsymbolic", "-Wl,-z,nodelete", "-Wl,-z,defs",
	}
}

// FindCompiler returns the command that CC names, with its flags, or the first compiler that is there. Error: ErrNoCompiler.
func FindCompiler() ([]string, error) {
	if words := strings.Fields(os.Getenv("CC")); len(words) > 0 {
		path, err := exec.LookPath(words[0])
		if err != nil {
			return nil, fmt.Errorf("%w: CC=%s: %w", ErrNoCompiler, os.Getenv("CC"), err)
		}
		return append([]string{path}, words[1:]...), nil
	}
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return []string{path}, nil
		}
	}
	return nil, fmt.Errorf("%w: install gcc or clang, or set CC", ErrNoCompiler)
}

// writeSource writes the embedded files below dir, and replaces existing ones.
func writeSource(dir string) error {
	return fs.WalkDir(source, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(path))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := source.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o644)
	})
}
