//go:build linux && (amd64 || arm64) && !race

// Under the race detector purego's pool of argument blocks forgets some on purpose.

package dynamic_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/meter"
)

// No call allocates in Go, with or without the counting wrapper.
func TestCallsAllocateNothing(t *testing.T) {
	for name, wrap := range map[string]func(cudadrv.Device) cudadrv.Device{
		"dynamic": func(d cudadrv.Device) cudadrv.Device { return d },
		"meter":   func(d cudadrv.Device) cudadrv.Device { return meter.New(d) },
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := newFake(t).driver().Open(0)
			require.NoError(t, err)
			allocateNothing(t, wrap(dev))
			require.NoError(t, dev.Close())
		})
	}
}

// allocateNothing makes every call over and over.
func allocateNothing(t *testing.T, dev cudadrv.Device) {
	t.Helper()
	w := newWork(t, dev)
	for name, call := range w.calls() {
		require.NoError(t, call(), name)
		var failed error
		assert.Zero(t, testing.AllocsPerRun(100, func() { failed = first(failed, call()) }), name)
		require.NoError(t, failed, name)
	}
	w.close(t)
}

// Submitting a function allocates nothing either; that C calls back is purego's work and its allocations.
func TestLaunchHostFuncAllocatesNothing(t *testing.T) {
	f := newFake(t)
	f.setMode(queued)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	require.NoError(t, w.LaunchHostFunc(w.stream, func() {})) // the process's callback is made
	require.NoError(t, w.StreamSynchronize(w.stream))
	ran := 0
	function := func() { ran++ }
	var failed error
	assert.Zero(t, testing.AllocsPerRun(50, func() { failed = first(failed, w.LaunchHostFunc(w.stream, function)) }))
	require.NoError(t, failed)
	require.NoError(t, w.StreamSynchronize(w.stream))
	assert.Equal(t, 51, ran)
	w.close(t)
	require.NoError(t, dev.Close())
}
