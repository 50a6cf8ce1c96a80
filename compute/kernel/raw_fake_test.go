//go:build !gpu

package kernel_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/cuda/nvrtc"
)

// fakeNVRTC is a compiler for CUDA C++ whose code is the source.
func fakeNVRTC(t *testing.T) *nvrtc.Library {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to open without a compiler
	}
	path := filepath.Join(t.TempDir(), "libnvrtc.so.13")
	out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", path, "../../cuda/nvrtc/testdata/fakenvrtc.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	lib, err := nvrtc.Find(path)
	require.NoError(t, err)
	return lib
}

func TestRawCUDA(t *testing.T) {
	lib := fakeNVRTC(t)
	store := &counting{}
	r := newRig(t, kernel.WithStore(store))
	for range 2 {
		f, err := r.kernels.RawCUDA(lib, "twice.cu", double, "twice", "-O3").Await(t.Context())
		require.NoError(t, err)
		r.twice(f)
	}
	assert.Equal(t, int32(1), store.puts.Load())
	f, err := r.kernels.RawCUDA(lib, "includes.cu", "// include\n"+double, "twice").Await(t.Context())
	require.NoError(t, err)
	r.twice(f)
	for _, options := range [][]string{{"-O3", "--pre-include=a.h"}, {"--pre-include=a.h", "-O3"}} {
		f, err = r.kernels.RawCUDA(lib, "options.cu", double, "twice", options...).Await(t.Context())
		require.NoError(t, err)
		r.twice(f)
	}
	assert.Equal(t, int32(1), store.puts.Load(), "the files that a source or an option includes may change")
	f, err = r.kernels.RawCUDA(lib, "options.cu", double, "twice", "-O3").Await(t.Context())
	require.NoError(t, err)
	r.twice(f)
	assert.Equal(t, int32(2), store.puts.Load())
	_, err = r.kernels.RawCUDA(lib, "broken.cu", "int a;\n#error\n", "f").Await(t.Context())
	var refused *nvrtc.CompileError
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, err.Error(), "2  #error")
}

// An image of the store that the driver refuses is compiled again.
func TestARefusedImageOfCUDAIsCompiledAgain(t *testing.T) {
	store := &lying{}
	r := newRig(t, kernel.WithStore(store))
	f, err := r.kernels.RawCUDA(fakeNVRTC(t), "twice.cu", double, "twice").Await(t.Context())
	require.NoError(t, err)
	r.twice(f)
	stats := r.kernels.Stats()
	assert.Equal(t, [3]int64{1, 0, 1}, [3]int64{stats.Compiled, stats.Stored, stats.Refused})
	assert.Equal(t, int32(1), store.puts.Load())
}
