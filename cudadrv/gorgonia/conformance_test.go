//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/gorgonia"
	"github.com/go-vram/vram/cudadrv/meter"
)

// threaded is the fake's mode in which threads perform the work of streams.
const threaded = 2

// wraps returns the driver itself and the wrappers that must not change it.
func wraps() map[string]func(cudadrv.Driver) cudadrv.Driver {
	return map[string]func(cudadrv.Driver) cudadrv.Driver{
		"gorgonia": func(d cudadrv.Driver) cudadrv.Driver { return d },
		"fault":    func(d cudadrv.Driver) cudadrv.Driver { return fault.Wrap(d) },
		"meter":    func(d cudadrv.Driver) cudadrv.Driver { return metered{d} },
	}
}

// metered is a driver whose devices are counted.
type metered struct{ cudadrv.Driver }

func (m metered) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := m.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return meter.New(dev), nil
}

func TestConformanceInThePrimaryContext(t *testing.T) {
	for name, wrap := range wraps() {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) cudadrv.Driver {
				t.Helper()
				newFake(t).set("mode", threaded)
				return wrap(gorgonia.New(gorgonia.Config{}))
			})
		})
	}
}

func TestConformanceInAnAdoptedContext(t *testing.T) {
	for name, wrap := range wraps() {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) cudadrv.Driver {
				t.Helper()
				newFake(t).set("mode", threaded)
				return wrap(gorgonia.New(gorgonia.Config{Context: newContext(t, 0)}))
			})
		})
	}
}

// Without an ability of the device the rest works and the calls of the ability say that it is missing.
func TestConformanceOfALesserDevice(t *testing.T) {
	attributes := []int32{102, 103}
	drivertest.Run(t, func(t *testing.T) cudadrv.Driver {
		t.Helper()
		f := newFake(t)
		f.set("mode", threaded)
		for _, attribute := range attributes {
			f.setAttribute(0, attribute, 0)
			t.Cleanup(func() { f.setAttribute(0, attribute, 1) })
		}
		return gorgonia.New(gorgonia.Config{})
	})
}

// newContext makes a context by gorgonia.org/cu that is current nowhere, and destroys it at the end.
func newContext(t *testing.T, ordinal int) cu.CUContext {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	device, err := cu.GetDevice(ordinal)
	require.NoError(t, err)
	context, err := device.MakeContext(cu.SchedAuto)
	require.NoError(t, err)
	_, err = cu.PopCurrentCtx()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, context.Destroy()) })
	return context
}
