//go:build linux && (amd64 || arm64) && !gpu

package dynamic

import (
	"math/bits"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// Watch calls seen at each call of the driver with the number of frames that are out, until it is stopped. The functions that only
// change the thread work, and all others fail.
func Watch(t *testing.T, dev cudadrv.Device, seen func(out int)) (stop func()) {
	t.Helper()
	d, ok := dev.(*device)
	require.True(t, ok)
	function := func(r cudadrv.Result) uintptr {
		return purego.NewCallback(func() uintptr {
			seen(FramesOut(d))
			return uintptr(r)
		})
	}
	was, works, fails := d.lib, function(cudadrv.Success), function(cudadrv.LaunchFailed)
	d.lib = &library{path: was.path, version: was.version}
	for fn := range d.lib.functions {
		d.lib.functions[fn] = fails
	}
	for _, fn := range []symbol{cuCtxPushCurrent, cuCtxPopCurrent, call.ThreadExchangeStreamCaptureMode} {
		d.lib.functions[fn] = works
	}
	return func() { d.lib = was }
}

// FramesOut returns the number of frames that calls have, without extra ones.
func FramesOut(dev cudadrv.Device) int {
	d, _ := dev.(*device)
	out := shardCount * shardFrames
	for i := range d.gate.shards {
		out -= bits.OnesCount64(d.gate.shards[i].free.Load() & allFree)
	}
	return out
}
