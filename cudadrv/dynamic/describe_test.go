//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// Describe returns the Info of a Device, and makes no context, also if none can be made.
func TestDescribe(t *testing.T) {
	f := newFake(t)
	f.setDevices(2)
	d := f.driver()
	f.failCall("cuDevicePrimaryCtxRetain", 1, int32(cudadrv.OutOfMemory))
	info, err := d.Describe(1)
	require.NoError(t, err)
	assert.Zero(t, f.calls("cuDevicePrimaryCtxRetain"))
	_, err = d.Open(1)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	dev, err := d.Open(1)
	require.NoError(t, err)
	assert.Equal(t, dev.Info(), info)
	require.NoError(t, dev.Close())
	_, err = d.Describe(2)
	require.ErrorIs(t, err, cudadrv.ErrNoDevice)
	_, err = d.Describe(-1)
	require.ErrorIs(t, err, cudadrv.ErrNoDevice)
}
