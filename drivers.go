package vram

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/sim"
)

// DriverNamed makes a driver for Config.Driver by name:
//
//   - "dynamic": libcuda, loaded at run time.
//   - "sim": the simulated device, its virtual time running with the clock.
//   - "auto": dynamic where this machine has a GPU, and sim where it has no driver or no device. A
//     driver that is installed and does not work is an error, not a reason to simulate. The name is
//     resolved by the call, which can take a second.
//
// The driver's Name, and Device.Info, tell the two apart. Errors: *ConfigError; with "auto" also
// the driver's.
func DriverNamed(name string) (cudadrv.Driver, error) {
	switch name {
	case "auto":
		return automatic(dynamic.New(dynamic.Config{}))
	case "dynamic":
		return dynamic.New(dynamic.Config{}), nil
	case "sim":
		return simulated(), nil
	default:
		return nil, badArgument("DriverNamed", "name", name, driverNames)
	}
}

// driverNames are the valid names.
const driverNames = "auto, dynamic or sim"

func simulated() cudadrv.Driver { return sim.New(sim.Config{Clock: sim.Running}) }

// automatic is the GPU's driver or, where the machine has none, the simulator.
func automatic(gpu cudadrv.Driver) (cudadrv.Driver, error) {
	count, err := gpu.DeviceCount()
	switch {
	case err == nil && count > 0:
		return gpu, nil
	case err == nil || dynamic.Missing(err):
		return simulated(), nil
	}
	return nil, failed("the driver does not work (sim is the simulator)", err)
}
