//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/internal/fakecuda"
)

// metered is a driver whose devices are counted.
type metered struct{ cudadrv.Driver }

func (m metered) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := m.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return meter.New(dev), nil
}

func TestConformanceOnTheFake(t *testing.T) {
	for name, wrap := range map[string]func(cudadrv.Driver) cudadrv.Driver{
		"dynamic": func(d cudadrv.Driver) cudadrv.Driver { return d },
		"fault":   func(d cudadrv.Driver) cudadrv.Driver { return fault.Wrap(d) },
		"meter":   func(d cudadrv.Driver) cudadrv.Driver { return metered{d} },
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) cudadrv.Driver {
				t.Helper()
				f := newFake(t)
				f.setMode(threaded)
				return wrap(f.driver())
			})
		})
	}
}

// Without an ability of the device the rest works and the calls of the ability say that it is missing.
func TestConformanceOfLesserDevices(t *testing.T) {
	for name, attributes := range map[string][]int32{
		"no virtual memory": {102},
		"no descriptors":    {103},
		"neither of them":   {102, 103},
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) cudadrv.Driver {
				t.Helper()
				f := newFake(t)
				f.setMode(threaded)
				for _, attribute := range attributes {
					f.setAttribute(0, attribute, 0)
				}
				return f.driver()
			})
		})
	}
}

// A library that lacks a function of each optional interface says so by the capabilities and at every call; without
// cuFuncGetParamInfo only that call is missing.
func TestConformanceOfALesserLibrary(t *testing.T) {
	_ = fakeLibrary(t) // where there is a compiler
	path, err := fakecuda.Build(t.TempDir(), "cuGraphUpload", "cuEventElapsedTime", "cuMemcpy2DAsync_v2", "cuMemcpyPeerAsync",
		"cuIpcOpenEventHandle", "cuFuncGetParamInfo", "cuTensorMapEncodeTiled")
	require.NoError(t, err)
	lesser, err := os.ReadFile(path)
	require.NoError(t, err)
	drivertest.Run(t, func(t *testing.T) cudadrv.Driver {
		t.Helper()
		f := newFakeOf(t, lesser)
		f.setMode(threaded)
		return f.driver()
	})
	dev, err := newFakeOf(t, lesser).driver().Open(0)
	require.NoError(t, err)
	const lacking = cudadrv.GraphLaunches | cudadrv.EventTiming | cudadrv.WideFills | cudadrv.PeerAccess | cudadrv.EventSharing |
		cudadrv.BulkTensors
	assert.Zero(t, dev.Info().Capabilities&lacking, "%v", dev.Info().Capabilities)
	assert.True(t, dev.Info().Capabilities.Has(cudadrv.KernelLaunches))
	w := dev.(everything)
	require.ErrorContains(t, w.GraphLaunch(1, 0), "no graphs: ")
	require.ErrorContains(t, w.GraphLaunch(1, 0), " lacks cuGraphUpload")
	_, _, err = w.FuncGetParamInfo(1, 0)
	require.ErrorIs(t, err, cudadrv.NotSupported)
	require.ErrorContains(t, err, "lacks it")
	require.NoError(t, dev.Close())
}

// The error of a call that needs several features is about the one that is missing, whether the library or the device lacks it.
func TestWhyMemoryCannotBeShared(t *testing.T) {
	_ = fakeLibrary(t) // where there is a compiler
	path, err := fakecuda.Build(t.TempDir(), "cuMemExportToShareableHandle")
	require.NoError(t, err)
	lesser, err := os.ReadFile(path)
	require.NoError(t, err)
	refused := func(f *fake) error {
		dev, err := f.driver().Open(0)
		require.NoError(t, err)
		_, err = dev.(everything).MemCreateShareable(2 << 20)
		require.ErrorIs(t, err, cudadrv.NotSupported)
		require.NoError(t, dev.Close())
		return err
	}
	err = refused(newFakeOf(t, lesser))
	require.ErrorContains(t, err, "no shareable handles: ")
	require.ErrorContains(t, err, " lacks cuMemExportToShareableHandle")
	for attribute, text := range map[int32]string{103: " has no shareable handles", 102: " has no virtual memory"} {
		f := newFake(t)
		f.setAttribute(0, attribute, 0)
		require.ErrorContains(t, refused(f), text)
	}
}

func TestInfoOnTheFake(t *testing.T) {
	f := newFake(t)
	f.setDevices(2)
	f.setVersion(12040)
	dev, err := f.driver().Open(1)
	require.NoError(t, err)
	info := dev.Info()
	require.Equal(t, "dynamic", info.Driver)
	require.Equal(t, 1, info.Ordinal)
	require.Equal(t, 12040, info.DriverVersion)
	require.EqualValues(t, 2<<20, info.GranularityBytes)
	require.True(t, info.Capabilities.Has(cudadrv.VirtualMemory|cudadrv.PinnedHost|cudadrv.HostCalls|
		cudadrv.ShareableHandles|cudadrv.CaptureInformation|cudadrv.BlockingCreation))
	require.True(t, info.Capabilities.Has(cudadrv.KernelLaunches|cudadrv.GraphLaunches|cudadrv.EventTiming|cudadrv.WideFills|
		cudadrv.PeerAccess|cudadrv.EventSharing|cudadrv.BulkTensors))
	require.Equal(t, cudadrv.ComputeCapability{Major: 9}, info.Compute)
	require.Equal(t, 132, info.Multiprocessors)
	require.NoError(t, dev.Close())
}
