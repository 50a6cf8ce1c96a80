package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
)

// runs says that the process is the command.
const runs = "VRAM_COMPILE"

func TestMain(m *testing.M) {
	if os.Getenv(runs) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The command compiles all variants from their sources, and says how much that is; it fails where a source is missing.
func TestCommand(t *testing.T) {
	root, path := t.TempDir(), t.TempDir()
	house := filepath.Join(root, "compute/kernel/matmul")
	require.NoError(t, os.MkdirAll(filepath.Join(house, "ptx"), 0o700))
	for _, name := range variant.Files() {
		file := filepath.Join(root, "compute/kernel/matmul/source", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(name), 0o600))
	}
	compiler := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo clang; else echo \".entry $*\"; fi\n"
	require.NoError(t, os.WriteFile(filepath.Join(path, "clang-19"), []byte(compiler), 0o700)) //nolint:gosec // it is run
	command := func() (string, error) {
		c := exec.Command(os.Args[0])
		c.Dir, c.Env = root, append(os.Environ(), runs+"=1", "PATH="+path)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	out, err := command()
	require.NoError(t, err, out)
	assert.Regexp(t, fmt.Sprintf(`^%d variants, \d+ bytes\n$`, len(variant.All())), out)
	texts, err := filepath.Glob(filepath.Join(house, "ptx/*.ptx.gz"))
	require.NoError(t, err)
	assert.Len(t, texts, len(variant.All()))
	assert.FileExists(t, filepath.Join(house, "ptx/made"))

	require.NoError(t, os.Remove(filepath.Join(root, "compute/kernel/matmul/source", variant.Files()[0])))
	out, err = command()
	var failed *exec.ExitError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, 1, failed.ExitCode())
	assert.Contains(t, out, "compile: ")
}
