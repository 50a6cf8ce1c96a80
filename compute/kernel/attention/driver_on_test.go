//go:build gpu

package attention_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// open opens a GPU.
func open(tb testing.TB) *vram.Device {
	tb.Helper()
	dev, err := vram.Open(vram.Config{Driver: dynamic.New(dynamic.Config{})})
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, dev.Close()) })
	return dev
}
