//go:build linux && (amd64 || arm64)

package dynamic

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// home is how many of a gate's frames no call has.
func (g *gate) home() (frames int) {
	for i := range g.shards {
		for f := g.shards[i].free.Load(); f != 0; f &= f - 1 {
			frames++
		}
	}
	return frames
}

// A call that is refused before the driver is asked gives its frame back, else Close would wait for it for ever: one whose arguments mean
// nothing, and one that the device does not have.
func TestARefusedCallGivesItsFrameBack(t *testing.T) {
	d := &device{lib: &library{}, info: cudadrv.Info{GranularityBytes: 2 << 20}}
	d.gate.init()
	optional := map[string]func() error{
		"cuMemAddressReserve":  func() error { _, err := d.MemAddressReserve(1); return err },
		"cuMemAddressFree":     func() error { return d.MemAddressFree(0, 1) },
		"cuMemCreate":          func() error { _, err := d.MemCreate(1); return err },
		"cuMemCreate to share": func() error { _, err := d.MemCreateShareable(1); return err },
		"cuMemRelease":         func() error { return d.MemRelease(0) },
		"cuMemMap":             func() error { return d.MemMap(0, 1, 1) },
		"cuMemSetAccess":       func() error { return d.MemSetAccess(0, 1) },
		"cuMemUnmap":           func() error { return d.MemUnmap(0, 1) },
		"cuLaunchHostFunc":     func() error { return d.LaunchHostFunc(0, nil) },
		"cuMemHostAlloc":       func() error { _, err := d.MemHostAlloc(0); return err },
		"cuMemFreeHost":        func() error { return d.MemFreeHost(nil) },
		"cuMemHostRegister":    func() error { return d.MemHostRegister(nil) },
		"cuMemHostUnregister":  func() error { return d.MemHostUnregister(nil) },
		"cuMemHostGetDevicePointer": func() error {
			_, err := d.MemHostGetDevicePointer(nil)
			return err
		},
	}
	always := map[string]func() error{
		"cuMemAlloc":         func() error { _, err := d.MemAlloc(0); return err },
		"cuMemsetD8Async":    func() error { return d.MemsetD8Async(1, 0, -1, 0) },
		"cuMemcpyDtoDAsync":  func() error { return d.MemcpyDtoDAsync(1, 1, -1, 0) },
		"cuStreamDestroy":    func() error { return d.StreamDestroy(lastStandardStream) },
		"cuStreamWaitEvent":  func() error { return d.StreamWaitEvent(0, 0) },
		"cuEventDestroy":     func() error { return d.EventDestroy(0) },
		"cuEventRecord":      func() error { return d.EventRecord(0, 0) },
		"cuEventQuery":       func() error { _, err := d.EventQuery(0); return err },
		"cuEventSynchronize": func() error { return d.EventSynchronize(0) },
	}
	refused := func(calls map[string]func() error, result ...cudadrv.Result) {
		for name, call := range calls {
			var failure *cudadrv.CallError
			require.ErrorAs(t, call(), &failure, name)
			assert.Contains(t, result, failure.Result, name)
			require.Equal(t, shardCount*shardFrames, d.gate.home(), name)
		}
	}
	refused(optional, cudadrv.NotSupported)
	refused(always, cudadrv.InvalidValue, cudadrv.InvalidHandle)
	d.info.Capabilities = ^cudadrv.Capability(0)
	refused(optional, cudadrv.InvalidValue)

	nothing := map[string]error{ // and is no mistake
		"cuMemFree":         d.MemFree(0),
		"cuMemsetD8Async":   d.MemsetD8Async(1, 0, 0, 0),
		"cuMemcpyDtoDAsync": d.MemcpyDtoDAsync(1, 1, 0, 0),
		"cuMemcpyHtoDAsync": d.MemcpyHtoDAsync(1, nil, 0),
		"cuMemcpyDtoHAsync": d.MemcpyDtoHAsync(nil, 1, 0),
	}
	for name, err := range nothing {
		require.NoError(t, err, name)
	}
	assert.Equal(t, shardCount*shardFrames, d.gate.home())
}
