//go:build linux && (amd64 || arm64) && !gpu

package fakecuda_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fakecuda"
)

func TestBuildWithoutCompiler(t *testing.T) {
	t.Setenv("CC", "/nowhere/cc -m64")
	_, err := fakecuda.Build(t.TempDir())
	require.ErrorIs(t, err, fakecuda.ErrNoCompiler)
	assert.ErrorContains(t, err, "CC=/nowhere/cc -m64")

	t.Setenv("CC", "")
	t.Setenv("PATH", t.TempDir())
	_, err = fakecuda.Build(t.TempDir())
	assert.ErrorIs(t, err, fakecuda.ErrNoCompiler)
}

func TestBuildFails(t *testing.T) {
	compiler := filepath.Join(t.TempDir(), "cc")
	require.NoError(t, os.WriteFile(compiler, []byte("#!/bin/sh\necho no room\nexit 3\n"), 0o755))
	t.Setenv("CC", compiler)
	_, err := fakecuda.Build(t.TempDir())
	var buildError *fakecuda.BuildError
	require.ErrorAs(t, err, &buildError)
	assert.Equal(t, "no room\n", buildError.Output)
	assert.ErrorContains(t, err, "exit status 3")
}

// Build replaces existing files.
func TestBuildAgain(t *testing.T) {
	open(t) // where there is a compiler
	dir := t.TempDir()
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(dir, "libcuda.so")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "libcuda.so.1"), []byte("old"), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "source"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "source", "queue.c"), []byte("old"), 0o644))
	path, err := fakecuda.Build(dir)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "libcuda.so.1"), path)
	target, err := os.Readlink(filepath.Join(dir, "libcuda.so"))
	require.NoError(t, err)
	assert.Equal(t, "libcuda.so.1", target)
	assert.FileExists(t, filepath.Join(dir, "source", "include", "cuda.h"))
	source, err := os.ReadFile(filepath.Join(dir, "source", "queue.c"))
	require.NoError(t, err)
	assert.NotEqual(t, "old", string(source))
	_, err = purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	assert.NoError(t, err)
}

// The fake itself is built without -Werror: a compiler of another year may warn of more.
func TestSourceHasNoWarnings(t *testing.T) {
	open(t)
	compiler := strings.Fields(os.Getenv("CC"))
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil && len(compiler) == 0 {
			compiler = []string{path}
		}
	}
	files, err := filepath.Glob("source/*.c")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	arguments := append(compiler, "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-Isource/include")
	output, err := exec.Command(arguments[0], append(arguments[1:], files...)...).CombinedOutput()
	assert.NoError(t, err, "%s", output)
}

// A source file that an earlier version left in the folder is not compiled.
func TestBuildLeavesEarlierSourcesOut(t *testing.T) {
	open(t) // where there is a compiler
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "source"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "source", "earlier.c"), []byte("#error earlier\n"), 0o644))
	_, err := fakecuda.Build(dir, "cuMemUnmap") // no build of this process has these symbols
	require.NoError(t, err)
}

// A library is compiled once for a process, and once for all processes with the same folder, as long as source, compiler and arguments are the same.
func TestLibrariesAreCompiledOnce(t *testing.T) {
	dir, folder := t.TempDir(), filepath.Join(t.TempDir(), "made", "on", "use")
	t.Setenv(fakecuda.Variable, folder)
	compiler, count := filepath.Join(dir, "cc"), 0
	require.NoError(t, os.WriteFile(compiler, []byte("#!/bin/sh\necho call >> calls\nfor last; do :; done\necho \"$1 $(wc -l < calls)\" > $last\n"), 0o755))
	compile := func(call int, source, argument string) {
		t.Helper()
		content, err := fakecuda.Compile([]string{compiler}, dir, []byte(source), argument)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("%s %d\n", argument, call), string(content))
		calls, err := os.ReadFile(filepath.Join(dir, "calls"))
		require.NoError(t, err)
		count = max(count, call)
		assert.Equal(t, count, strings.Count(string(calls), "call"))
	}
	compile(1, "a", "-x")
	compile(1, "a", "-x")
	compile(2, "b", "-x")
	compile(3, "a", "-y")
	fakecuda.Forget() // as another process
	compile(1, "a", "-x")
	compile(3, "a", "-y")
	t.Setenv(fakecuda.Variable, "")
	compile(4, "b", "-x") // nobody keeps it
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	assert.Len(t, files, 3)
	left, err := filepath.Glob(filepath.Join(dir, "*.so"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
