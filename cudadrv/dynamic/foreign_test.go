//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// Other libraries are called with the device's context current, pushed on the thread's contexts, and popped afterwards, also
// after a panic. A closed device has no context.
func TestOtherLibrariesHaveTheContext(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	r := newRaw(t, f.path)
	other := r.newContext(t, 0)
	foreign, ok := dev.(cudadrv.ForeignCalls)
	require.True(t, ok)
	peers, ok := dev.(cudadrv.Peers)
	require.True(t, ok)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.Zero(t, r.push(other))
	captures, ok := dev.(cudadrv.Graphs)
	require.True(t, ok)
	exchange := func(mode cudadrv.CaptureMode) cudadrv.CaptureMode {
		was, err := captures.ThreadExchangeStreamCaptureMode(mode)
		require.NoError(t, err)
		return was
	}
	exchange(cudadrv.CaptureThreadLocal)
	why := errors.New("why")
	require.ErrorIs(t, foreign.WithContext(func() error {
		assert.Equal(t, cudadrv.CaptureRelaxed, exchange(cudadrv.CaptureRelaxed), "what it calls ends no capture")
		assert.Equal(t, uintptr(peers.Context()), r.current(t))
		_, _, err := dev.MemGetInfo() // calls of the device itself work inside
		require.NoError(t, err)
		return why
	}), why)
	assert.Equal(t, other, r.current(t))
	assert.Panics(t, func() { _ = foreign.WithContext(func() error { panic("library") }) })
	assert.Equal(t, other, r.current(t))
	assert.Equal(t, cudadrv.CaptureThreadLocal, exchange(cudadrv.CaptureGlobal), "the thread's mode is as it was")
	var popped uintptr
	require.Zero(t, r.pop(&popped))
	require.Zero(t, r.destroy(other))
	require.NoError(t, dev.Close())
	require.ErrorIs(t, foreign.WithContext(func() error { return nil }), cudadrv.InvalidContext)
}
