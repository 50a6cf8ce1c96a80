package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestConformance(t *testing.T) {
	for name, config := range map[string]sim.Config{
		"zero":              {},
		"running":           {Clock: sim.Running},
		"no virtual memory": {NoVirtualMemory: true},
		"small granules":    {GranularityBytes: 64 << 10, TotalBytes: 1 << 30},
		"no costs":          {NoCosts: true, ReuseStreamIDs: true, Devices: 2},
	} {
		conform(t, name, config)
	}
}

// conform runs the suite, and looks at the books after each of its tests.
func conform(t *testing.T, name string, config sim.Config) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		drivertest.Run(t, func(t *testing.T) cudadrv.Driver {
			t.Helper()
			drv := sim.New(config)
			t.Cleanup(func() { require.NoError(t, drv.Device(0).Audit()) })
			return drv
		})
	})
}

// capturing is a device that drops the graphs of its captures.
type capturing struct{ *sim.Device }

func (c capturing) EndCapture(s cudadrv.Stream) error {
	_, err := c.Device.EndCapture(s)
	return err
}

func TestCaptureConformance(t *testing.T) {
	drivertest.RunCaptures(t, func(t *testing.T) (cudadrv.Driver, drivertest.Captures) {
		t.Helper()
		drv := sim.New(sim.Config{})
		t.Cleanup(func() { require.NoError(t, drv.Device(0).Audit()) })
		return drv, capturing{drv.Device(0)}
	})
}
