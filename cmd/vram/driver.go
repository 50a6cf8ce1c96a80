package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/cudadrv/sim"
)

// deviceFlags choose the device.
type deviceFlags struct {
	Driver driverFlag `placeholder:"NAME" help:"auto, dynamic (a GPU), gorgonia (a GPU through gorgonia.org/cu, where the command was built with it), sim, cpu (computes on the processor) or gpu-or-cpu. auto takes a GPU where there is one, else the simulated device (default $$VRAM_DRIVER, or auto)."`
}

// driverFlag is the name of a driver; empty without the flag.
type driverFlag string

// UnmarshalText reads the name of a known driver.
func (f *driverFlag) UnmarshalText(text []byte) error {
	switch name := string(text); name {
	case "auto", "dynamic", "gorgonia", "sim", cpu.Name, "gpu-or-" + cpu.Name:
		*f = driverFlag(name)
		return nil
	default:
		return fmt.Errorf("%q: want auto, dynamic, gorgonia, sim, cpu or gpu-or-cpu", name)
	}
}

// device returns the environment's configuration, and a function that makes a driver for each device that a command opens. It
// prints auto's choice to stderr. The simulated device has the stepped clock: a measurement waits for nothing.
func (f deviceFlags) device(p *program) (cfg vram.Config, newDriver func() cudadrv.Driver, err error) {
	if cfg, err = vram.ConfigFromEnv(vram.Config{}); err != nil {
		if wrong, ok := errors.AsType[*vram.EnvError](err); ok && (wrong.Err == nil || errors.Is(err, vram.ErrUnknownVariable)) {
			err = &usageError{err}
		}
		return cfg, nil, err
	}
	automatic := f.Driver == "auto" || strings.HasPrefix(string(f.Driver), "gpu-or-") || f.Driver == "" && cfg.Driver == nil || f.Driver == "" && variable("VRAM_DRIVER") == "auto"
	if f.Driver != "" || cfg.Driver == nil {
		if cfg.Driver, err = f.named(); err != nil {
			return cfg, nil, err
		}
	}
	driver := cfg.Driver
	if automatic {
		_, _ = fmt.Fprintf(p.stderr, "driver: %s (%s)\n", driver.Name(), cmp.Or(string(f.Driver), "auto"))
	}
	switch driver.(type) {
	case *sim.Driver:
		return cfg, func() cudadrv.Driver { return sim.New(sim.Config{}) }, nil
	case *cpu.Driver:
		return cfg, func() cudadrv.Driver { return cpu.New(cpu.Config{}) }, nil
	}
	return cfg, func() cudadrv.Driver { return driver }, nil
}

// variable reads an environment variable as vram.ConfigFromEnv does.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// named returns the driver with that name. The root package has no gorgonia: it must build without cgo.
func (f deviceFlags) named() (cudadrv.Driver, error) {
	switch f.Driver {
	case "gorgonia":
		return throughGorgonia()
	case "":
		return vram.DriverNamed("auto")
	default:
		return vram.DriverNamed(string(f.Driver))
	}
}
