//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/meter"
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
	require.NoError(t, dev.Close())
}
