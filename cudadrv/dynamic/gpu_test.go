//go:build gpu && linux && (amd64 || arm64)

// Tests on real hardware. One binary, no other files:
//
//	CGO_ENABLED=0 go test -c -tags gpu -o bin/dynamic.test ./cudadrv/dynamic
//	bin/dynamic.test -test.v -test.run Hardware -test.bench Hardware

package dynamic_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/fault"
)

const realLibrary = "libcuda.so.1"

// openGPU opens the first device for a test.
func openGPU(tb testing.TB) cudadrv.Device {
	tb.Helper()
	dev, err := dynamic.New(dynamic.Config{}).Open(0)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, dev.Close()) })
	return dev
}

func TestHardwareConformance(t *testing.T) {
	for name, wrap := range map[string]func(cudadrv.Driver) cudadrv.Driver{
		"dynamic": func(d cudadrv.Driver) cudadrv.Driver { return d },
		"fault":   func(d cudadrv.Driver) cudadrv.Driver { return fault.Wrap(d) },
		"meter":   func(d cudadrv.Driver) cudadrv.Driver { return metered{d} },
	} {
		t.Run(name, func(t *testing.T) {
			drv := dynamic.New(dynamic.Config{})
			drivertest.Run(t, func(*testing.T) cudadrv.Driver { return wrap(drv) })
		})
	}
}

func TestHardwareCaptureConformance(t *testing.T) {
	drv := dynamic.New(dynamic.Config{})
	_, err := drv.DeviceCount() // starts the library
	require.NoError(t, err)
	drivertest.RunCaptures(t, func(t *testing.T) (cudadrv.Driver, drivertest.Captures) {
		t.Helper()
		return drv, newCapturing(t, realLibrary)
	})
}

// An adopted context keeps the same promises.
func TestHardwareConformanceInAnAdoptedContext(t *testing.T) {
	_, err := dynamic.New(dynamic.Config{}).DeviceCount()
	require.NoError(t, err)
	r := newRaw(t, realLibrary)
	own := r.newContext(t, 0)
	drv := dynamic.New(dynamic.Config{Context: own})
	drivertest.Run(t, func(*testing.T) cudadrv.Driver { return drv })
	require.Zero(t, r.destroy(own))
}

func TestHardwareInfo(t *testing.T) {
	info := openGPU(t).Info()
	t.Logf("%+v", info)
	assert.True(t, info.Capabilities.Has(cudadrv.VirtualMemory|cudadrv.PinnedHost|
		cudadrv.HostCalls|cudadrv.CaptureInformation), "%b", info.Capabilities)
	assert.True(t, info.Capabilities.Has(cudadrv.KernelLaunches|cudadrv.GraphLaunches|cudadrv.EventTiming|cudadrv.WideFills|
		cudadrv.PeerAccess|cudadrv.EventSharing), "%v", info.Capabilities)
	assert.GreaterOrEqual(t, info.Compute.Major, 7)
	assert.Positive(t, info.Multiprocessors)
}

func TestHardwareContextsOfOthersStayCurrent(t *testing.T) {
	dev := openGPU(t)
	r := newRaw(t, realLibrary)
	contextsStay(t, dev, r, []uintptr{r.newContext(t, 0), r.newContext(t, 0)})
}

func TestHardwareCallsWhileTheDeviceCaptures(t *testing.T) {
	callsWhileTheDeviceCaptures(t, openGPU(t))
}

func TestHardwareCallsWhileOthersCapture(t *testing.T) {
	dev := openGPU(t)
	callsWhileOthersCapture(t, dev, newCapturing(t, realLibrary))
}

func TestHardwareMemoryIsBackAfterwards(t *testing.T) {
	dev := openGPU(t)
	before, _, err := dev.MemGetInfo()
	require.NoError(t, err)
	w := newWork(t, dev)
	for range 20 {
		for name, call := range w.calls() {
			require.NoError(t, call(), name)
		}
	}
	w.close(t)
	after, _, err := dev.MemGetInfo()
	require.NoError(t, err)
	assert.InDelta(t, before, after, 64<<20, "what the driver keeps for itself is less")
}

func BenchmarkCallOnHardware(b *testing.B) { benchmarkCalls(b, openGPU(b)) }
