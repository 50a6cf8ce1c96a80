package main

import (
	"fmt"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// deviceFlags choose the device.
type deviceFlags struct {
	Driver string `default:"auto" enum:"auto,dynamic,gorgonia,sim" placeholder:"NAME" help:"auto, dynamic (a GPU), gorgonia (a GPU through gorgonia.org/cu, where the command was built with it) or sim. auto takes a GPU where there is one, else the simulated device."`
}

// factory is what makes a driver for each device that a command opens; auto says on stderr what it is. The
// simulated device has the stepped clock here: a measurement waits for nothing.
func (f deviceFlags) factory(p *program) (func() cudadrv.Driver, error) {
	driver, err := f.named()
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

// named is the driver of that name. The root knows no gorgonia: it must build without cgo.
func (f deviceFlags) named() (cudadrv.Driver, error) {
	if f.Driver == "gorgonia" {
		return throughGorgonia()
	}
	return vram.DriverNamed(f.Driver)
}
