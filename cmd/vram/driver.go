package main

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// deviceFlags choose the device.
type deviceFlags struct {
	Driver string `default:"auto" enum:"auto,sim" placeholder:"NAME" help:"auto or sim. auto takes what there is: the simulated device."`
}

// factory is what makes a driver for each device that a command opens; auto says on stderr what it is.
func (f deviceFlags) factory(p *program) func() cudadrv.Driver {
	newDriver := func() cudadrv.Driver { return sim.New(sim.Config{}) }
	if f.Driver == "auto" {
		_, _ = fmt.Fprintf(p.stderr, "driver: %s (auto)\n", newDriver().Name())
	}
	return newDriver
}
