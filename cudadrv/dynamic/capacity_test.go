//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
)

// Memory of the optional calls counts against an injected capacity as any other, until it is given back.
func TestInjectedCapacityCountsOptionalMemory(t *testing.T) {
	f := newFake(t)
	drv := fault.Wrap(f.driver())
	dev, err := drv.Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	drv.SetCapacity(w.granule*2 + 2*4096) // w's memory, and a granule more
	for range 2 {
		h, err := w.MemCreateShareable(w.granule)
		require.NoError(t, err)
		_, err = w.MemCreateShareable(w.granule)
		require.ErrorIs(t, err, cudadrv.OutOfMemory)
		require.ErrorContains(t, err, "injected capacity")
		require.NoError(t, w.MemRelease(h))
	}
	w.close(t)
	require.NoError(t, dev.Close())
}
