//go:build !gpu

package sleep_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/internal/fakecuda"
)

// modelBytes is how long the longest buffers of the model are together; with a GPU more.
const modelBytes = 24 * mib

// library returns the driver of a fake of libcuda.
func library(tb testing.TB) cudadrv.Driver {
	tb.Helper()
	path, err := fakecuda.Build(tb.TempDir())
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		tb.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(tb, err)
	return dynamic.New(dynamic.Config{Library: path})
}
