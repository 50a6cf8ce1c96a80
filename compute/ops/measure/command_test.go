//go:build !gpu

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/internal/fakecuda"
)

// The command measures nothing after its time, prints a table, and says what it has left out. It fails where the driver does.
func TestCommand(t *testing.T) {
	library, err := fakecuda.Build(t.TempDir())
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		t.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.Symlink(library, filepath.Join(folder, "libcuda.so.1")))
	command := func(env string, args ...string) (stdout, stderr string, code int) {
		c := exec.Command(os.Args[0], args...)
		var out, told strings.Builder
		c.Stdout, c.Stderr = &out, &told
		c.Env = append(os.Environ(), runs+"=1", "LD_LIBRARY_PATH="+folder, env)
		if err := c.Run(); err != nil {
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed)
			code = failed.ExitCode()
		}
		return out.String(), told.String(), code
	}
	stdout, stderr, code := command("", "-for", "-1s")
	assert.Zero(t, code, stderr)
	_, err = tune.Parse(stdout)
	require.NoError(t, err)
	left := 0
	for _, part := range parts() {
		left += len(part.operations)
	}
	assert.Contains(t, stderr, "0 of 0 kernels gain; ")
	assert.Regexp(t, `; `+strconv.Itoa(left)+` were not reached in -1s`, stderr)

	none := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(none, "libcuda.so.1"), []byte("no library"), 0o600))
	_, stderr, code = command("LD_LIBRARY_PATH="+none, "-for", "-1s")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "measure: ")
	_, stderr, code = command("", "-for", "nonsense")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, "-for")
}
