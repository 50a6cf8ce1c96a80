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
// ("cuMemCreate", "cuMemAlloc_v2"). The caller owns the files. It compiles in a second, see Compile. Each file that is loaded has
// state of its own. Errors: ErrNoCompiler, a *BuildError, or errors of writing files.
func Build(dir string, hidden ...string) (string, error) {
	compiler, err := FindCompiler()
	if err != nil {
		return "", err
	}
	if err := writeSource(dir); err != nil {
		return "", fmt.Errorf("fakecuda: writing the source: %w", err)
	}
	files, err := fs.Glob(source, "source/*.c") // the folder may have files of an earlier version
	if err != nil {
		return "", fmt.Errorf("fakecuda: finding the source: %w", err)
	}
	read, err := readSource()
	if err != nil {
		return "", fmt.Errorf("fakecuda: reading the source: %w", err)
	}
	content, err := Compile(compiler, dir, read, slices.Concat(flags(), Hide(hidden), files, []string{"-ldl"})...)
	if err != nil {
		return "", err
	}
	library := filepath.Join(dir, soname)
	if err := os.WriteFile(library, content, 0o755); err != nil {
		return "", fmt.Errorf("fakecuda: %w", err)
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

// Hide returns the compiler's arguments that leave out symbols.
func Hide(symbols []string) (arguments []string) {
	for _, symbol := range symbols {
		arguments = append(arguments, "-D"+symbol+"=hidden_"+symbol)
	}
	return arguments
}

// flags returns the compiler's. Nothing is optimised: the work is memset and memcpy, and compiling takes half the time.
// -Bsymbolic keeps two copies in one process apart; a library that is never unloaded
// (nodelete) may leave thread-specific data with the threads.
func flags() []string {
	return []string{
		"-std=c11", "-O0", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Isource/include",
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

// readSource returns the embedded files with their names.
func readSource() (all []byte, err error) {
	err = fs.WalkDir(source, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := source.ReadFile(path)
		all = fmt.Appendf(all, "%s %d\n%s", path, len(content), content)
		return err
	})
	return all, err
}
