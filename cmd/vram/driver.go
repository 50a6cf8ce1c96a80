package main

import (
	"fmt"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// deviceFlags choose the device.
type deviceFlags struct {
	Driver string `default:"auto" enum:"auto,dynamic,sim" placeholder:"NAME" help:"auto, dynamic (a GPU) or sim. auto takes a GPU where there is one, else the simulated device."`
}

// factory is what makes a driver for each device that a command opens; auto says on stderr what it is. The
// simulated device has the stepped clock here: a measurement waits for nothing.
func (f deviceFlags) factory(p *program) (func() cudadrv.Driver, error) {
	driver, err := vram.DriverNamed(f.Driver)
	if err != nil {
		return nil, err
	}
	if f.Driver == "auto" {
		_, _ = fmt.Fprintf(p.stderr, "driver: %s (auto)\n", driver.Name())
	}
	if _, simulated := driver.(*sim.Driver); simulated {
		return func() cudadrv.Driver { return sim.New(sim.Config{}) }, nil
	}
	return func() cudadrv.Driver { return driver }, nil
}
