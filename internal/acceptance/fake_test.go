package acceptance_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/internal/fakecuda"
)

// The allocator on libcuda's own interface, with real bytes at the addresses: the life of a
// device.
func TestADeviceOnTheFakeLibrary(t *testing.T) {
	path, err := fakecuda.Build(t.TempDir())
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		t.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(t, err)
	driver := dynamic.New(dynamic.Config{Library: path})
	view, err := driver.Open(0)
	require.NoError(t, err)
	before, _, err := view.MemGetInfo()
	require.NoError(t, err)

	dev, err := vram.Open(vram.Config{Driver: driver, LimitBytes: 1 << 30, Warm: []vram.Demand{{Bytes: 32 << 20, Count: 2}}})
	require.NoError(t, err)
	assert.Equal(t, "dynamic", dev.Info().Driver)
	s, err := dev.NewStream()
	require.NoError(t, err)
	var live []vram.Buffer
	for i := range 100 {
		b, err := s.Alloc(int64(1+i*7919) << 3)
		require.NoError(t, err)
		require.NoError(t, view.MemsetD8Async(b.Ptr(), byte(i), b.Bytes(), s.Handle()))
		live = append(live, b)
		if i%3 == 0 {
			require.NoError(t, live[0].Free())
			live = live[1:]
		}
	}
	_, err = s.Alloc(2 << 30)
	require.ErrorIs(t, err, vram.ErrTooLarge)
	for _, b := range live {
		require.NoError(t, b.Free())
	}
	_, err = dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	after, _, err := view.MemGetInfo()
	require.NoError(t, err)
	assert.Equal(t, before, after, "all memory is back")
	require.NoError(t, view.Close())
}
