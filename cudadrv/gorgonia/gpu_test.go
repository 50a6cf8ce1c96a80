//go:build gpu && gorgonia && cgo && linux && (amd64 || arm64)

// Tests on real hardware: make test-gpu-carry, then .dev/gorgonia.test -test.v -test.run Hardware there.

package gorgonia_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/gorgonia"
)

// The conformance suite passes on the first GPU of the machine, as on the fake, in the primary context and in a context of the
// caller.
func TestHardwareConformance(t *testing.T) {
	for name, wrap := range wraps() {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(*testing.T) cudadrv.Driver { return wrap(gorgonia.New(gorgonia.Config{})) })
		})
	}
}

func TestHardwareConformanceInAnAdoptedContext(t *testing.T) {
	own := newContext(t, 0)
	for name, wrap := range wraps() {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(*testing.T) cudadrv.Driver { return wrap(gorgonia.New(gorgonia.Config{Context: own})) })
		})
	}
}

func TestHardwareInfo(t *testing.T) {
	info := open(t, gorgonia.Config{}).Info()
	t.Logf("%+v", info)
	assert.Equal(t, "gorgonia", info.Driver)
	assert.True(t, info.Capabilities.Has(cudadrv.VirtualMemory|cudadrv.PinnedHost|
		cudadrv.HostCalls|cudadrv.CaptureInformation), "%b", info.Capabilities)
}

func TestHardwareHandlesThereAndBack(t *testing.T)         { handlesThereAndBack(t) }
func TestHardwareBothSidesShareTheDevice(t *testing.T)     { bothSidesShareTheDevice(t) }
func TestHardwareKernelsAndGraphsOfBothSides(t *testing.T) { kernelsAndGraphsOfBothSides(t) }
func TestHardwareTheThreadKeepsItsContext(t *testing.T)    { theThreadKeepsItsContext(t) }
func TestHardwareClosing(t *testing.T)                     { closeWhileCallsAreMade(t) }

func TestHardwareOutOfMemory(t *testing.T) {
	dev := open(t, gorgonia.Config{})
	_, totalBytes, err := dev.MemGetInfo()
	require.NoError(t, err)
	_, err = dev.MemAlloc(2 * totalBytes)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
}
