//go:build !gpu

package kernel_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/kernel"
	"github.com/go-vram/vram/kernel/nvrtc"
)

// The compiler for CUDA C++ is a fake, whose code is the source.
func TestRawCUDA(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to open without a compiler
	}
	path := filepath.Join(t.TempDir(), "libnvrtc.so.13")
	out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", path, "nvrtc/testdata/fakenvrtc.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	lib, err := nvrtc.Find(path)
	require.NoError(t, err)
	store := &counting{}
	r := newRig(t, kernel.WithStore(store))
	for range 2 {
		f, err := r.kernels.RawCUDA(lib, "twice.cu", double, "twice", "-O3").Await(t.Context())
		require.NoError(t, err)
		r.twice(f)
	}
	assert.Equal(t, int32(1), store.puts.Load())
	_, err = r.kernels.RawCUDA(lib, "broken.cu", "int a;\n#error\n", "f").Await(t.Context())
	var refused *nvrtc.CompileError
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, err.Error(), "2  #error")
}
