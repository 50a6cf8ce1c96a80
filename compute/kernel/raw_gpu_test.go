//go:build gpu

package kernel_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda/nvrtc"
)

func TestRawCUDAOnTheGPU(t *testing.T) {
	lib, err := nvrtc.Find()
	var missing *nvrtc.NotFoundError
	if errors.As(err, &missing) {
		t.Skip(err) //nolint:forbidigo // the compiler is optional
	}
	require.NoError(t, err)
	r := newRig(t)
	source := `extern "C" __global__ void twice(float *x, unsigned n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }`
	f, err := r.kernels.RawCUDA(lib, "twice.cu", source, "twice").Await(t.Context())
	require.NoError(t, err)
	r.twice(f)
	_, err = r.kernels.RawCUDA(lib, "broken.cu", "int a;\nnonsense\n", "f").Await(t.Context())
	var refused *nvrtc.CompileError
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, err.Error(), "2  nonsense")
}
