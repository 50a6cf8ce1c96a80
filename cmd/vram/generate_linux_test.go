//go:build amd64 || arm64

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CUDA C++ is compiled by clang where NVIDIA's compiler is not found, with the headers of the toolkit if there is one.
func TestKernelsOfClang(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	fake := `#!/bin/sh
echo "$@" >> ` + filepath.Join(folder, "calls") + `
case "$*" in
*broken.cu) echo "broken.cu:1: error: no" >&2; exit 1;;
*-nocudainc*) ;;
*) echo "error: cannot find CUDA installation; provide its path" >&2; exit 1;;
esac
for last; do :; done
cat "$last"
`
	require.NoError(t, os.WriteFile(filepath.Join(folder, "clang"), []byte(fake), 0o700)) //nolint:gosec // a program
	c := &kernelsCmd{Arch: "sm_80"}
	source := file(t, "copy.cu", ptxOfCopy)
	text, err := c.compile(t.Context(), source, "", notFound)
	require.NoError(t, err)
	assert.Equal(t, ptxOfCopy, text)
	calls, err := os.ReadFile(filepath.Join(folder, "calls"))
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(calls), "--cuda-gpu-arch=sm_80"))
	_, err = c.compile(t.Context(), file(t, "broken.cu", "no"), "", notFound)
	require.ErrorContains(t, err, "broken.cu:1: error: no")
}

// CUDA C++ is compiled by the library that the flag names. The fake compiles a text to itself.
func TestKernelsOfNVRTC(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libnvrtc.so")
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to open without a compiler
	}
	out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", path, "../../cuda/nvrtc/testdata/fakenvrtc.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	code, stdout, stderr := vramCommand(t, "kernels", "-package", "kern", "-nvrtc", path, file(t, "copy.cu", ptxOfCopy))
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "CopyWord(")
	code, _, stderr = vramCommand(t, "kernels", "-package", "kern", "-nvrtc", path, file(t, "broken.cu", "#error"))
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "error: #error")
}
