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
	return replace(d, function(cudadrv.Success), function(cudadrv.LaunchFailed))
}

// replace gives a device a library in which the functions that only change the thread are one function, and all others another
// one, until it is undone.
func replace(d *device, works, fails uintptr) (undo func()) {
	was := d.lib
	d.lib = &library{path: was.path, version: was.version}
	for fn := range d.lib.functions {
		d.lib.functions[fn] = fails
	}
	for _, fn := range []symbol{cuCtxPushCurrent, cuCtxPopCurrent, call.ThreadExchangeStreamCaptureMode} {
		d.lib.functions[fn] = works
	}
	return func() { d.lib = was }
}

// Arguments calls seen with the arguments of each call of the driver until it is stopped, without the calls that only change the
// thread or ask for the words of an error. Those that change the thread or find a device work, and all others fail.
func Arguments(t *testing.T, dev cudadrv.Device, seen func(args ...uintptr)) (stop func()) {
	t.Helper()
	d, ok := dev.(*device)
	require.True(t, ok)
	function := func(r cudadrv.Result) uintptr {
		return purego.NewCallback(func(a, b, c, d, e, f, g, h, i, j, k uintptr) uintptr { // as many as cuLaunchKernel has
			seen(a, b, c, d, e, f, g, h, i, j, k)
			return uintptr(r)
		})
	}
	stop = replace(d, always(cudadrv.Success), function(cudadrv.LaunchFailed))
	d.lib.functions[cuDeviceGet] = function(cudadrv.Success)
	for _, fn := range []symbol{cuGetErrorName, cuGetErrorString} {
		d.lib.functions[fn] = always(cudadrv.InvalidValue)
	}
	return stop
}

// always returns a function of the driver that has one result.
func always(r cudadrv.Result) uintptr {
	return purego.NewCallback(func() uintptr { return uintptr(r) })
}

// EachLack calls f with the device as it is with each library that lacks one function, which no device needs. All others
// are refused for a capture.
func EachLack(t *testing.T, dev cudadrv.Device, f func(function string)) {
	t.Helper()
	d, ok := dev.(*device)
	require.True(t, ok)
	works, fails, has := always(cudadrv.Success), always(cudadrv.CaptureViolation), d.info.Capabilities
	for _, ability := range features {
		if ability.capability == required {
			continue
		}
		for _, fn := range ability.functions {
			undo := replace(d, works, fails)
			d.lib.functions[fn] = 0
			d.info.Capabilities = has &^ ability.capability
			f(nameOf(fn))
			d.info.Capabilities = has
			undo()
		}
	}
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
