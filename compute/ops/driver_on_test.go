//go:build gpu

package ops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// library is the driver of a GPU.
func library(testing.TB) cudadrv.Driver { return dynamic.New(dynamic.Config{}) }

// open opens a GPU.
func open(tb testing.TB) *vram.Device {
	tb.Helper()
	dev, err := vram.Open(vram.Config{Driver: library(tb)})
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, dev.Close()) })
	return dev
}

// launching is the same driver, for tests that look at launches alone.
func launching(tb testing.TB) cudadrv.Driver { tb.Helper(); return library(tb) }

// bookkeeping is the same driver, for tests that count allocations.
func bookkeeping(tb testing.TB) cudadrv.Driver { tb.Helper(); return library(tb) }
