package fakecuda

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// Variable is the environment variable with the folder where Compile keeps libraries, for other processes. Compile removes none.
const Variable = "VRAM_FAKES"

// compiled has the content of each library that the process has compiled, by key. Nobody changes a table.
var compiled atomic.Pointer[table] //nolint:gochecknoglobals // The compiler would write the same bytes again: made on first use.

type table = map[[sha256.Size]byte][]byte

// remember puts a library into a new table.
func remember(key [sha256.Size]byte, content []byte) {
	for {
		before := compiled.Load()
		after := table{key: content}
		if before != nil {
			maps.Copy(after, *before)
		}
		if compiled.CompareAndSwap(before, &after) {
			return
		}
	}
}

// Compile returns the library that a compiler's command makes, with further arguments, in the folder dir: they name files relative to it. source
// has the contents of those files. It compiles unless this process, or another one whose environment names the same folder by Variable, has
// compiled the same source with the same command and arguments. The caller must not change the bytes. Errors: a *BuildError, or errors of files.
func Compile(compiler []string, dir string, source []byte, arguments ...string) ([]byte, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", compiler, arguments, source))
	if all := compiled.Load(); all != nil && (*all)[key] != nil {
		return (*all)[key], nil
	}
	folder := os.Getenv(Variable)
	kept := filepath.Join(folder, hex.EncodeToString(key[:])+".so")
	if folder != "" {
		if content, err := os.ReadFile(kept); err == nil {
			remember(key, content)
			return content, nil
		}
	}
	file, err := os.CreateTemp(dir, "*.so")
	if err != nil {
		return nil, fmt.Errorf("fakecuda: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("fakecuda: %w", err)
	}
	command := exec.Command(compiler[0], slices.Concat(compiler[1:], arguments, []string{"-o", file.Name()})...)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		return nil, &BuildError{Command: command.String(), Output: string(output), Err: err}
	}
	content, err := os.ReadFile(file.Name())
	if err != nil {
		return nil, fmt.Errorf("fakecuda: %w", err)
	}
	if folder != "" {
		if err := keep(folder, kept, content); err != nil {
			return nil, fmt.Errorf("fakecuda: keeping a library: %w", err)
		}
	}
	remember(key, content)
	return content, nil
}

// keep writes a file at once, so that another process reads all of it or none.
func keep(folder, path string, content []byte) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, strings.TrimSuffix(filepath.Base(path), ".so")+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
