// Package device opens a device for the programs of examples/gpt: a stream, the operations, and page-locked memory.
package device

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/cuda"
	_ "github.com/go-vram/vram/cudadrv/cpu" // the device without a GPU
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/internal/command"
	"github.com/go-vram/vram/host"
)

// Config returns the configuration of environment and flags. A simulated device executes kernels. Without VRAM_FOOTPRINT it is
// lean: training asks for memory in its first two steps alone, and holds no more than it needs.
func Config(flags *command.Flags) (vram.Config, error) {
	c, err := flags.Config()
	if err != nil {
		return c, err
	}
	if _, named := os.LookupEnv("VRAM_FOOTPRINT"); !named {
		c.Footprint = vram.Lean
	}
	if _, simulated := c.Driver.(*sim.Driver); simulated {
		c.Driver, err = vram.DriverNamed("cpu")
	}
	return c, err
}

// Device is an open device with a stream.
type Device struct {
	*cuda.Context

	Ops    ops.Ops
	Memory host.Allocator // page-locked; nil on a device that has none
}

// Open opens a device. The caller closes it.
func Open(config vram.Config) (d *Device, err error) {
	c, err := cuda.Open(config)
	if err != nil {
		return nil, err
	}
	d = &Device{Context: c}
	if d.Ops, err = ops.New(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	d.Memory, err = host.ByName(fmt.Sprintf("cuda:%d/pinned", config.Ordinal), host.Options{Driver: config.Driver})
	if _, none := errors.AsType[*host.CapabilityError](err); none {
		d.Memory, err = nil, nil
	}
	if err != nil {
		d.Memory = nil
		return nil, errors.Join(err, d.Close(context.Background()))
	}
	return d, nil
}

// Close waits for the device, and closes it: a *vram.InUseError lists buffers that nobody freed.
func (d *Device) Close(ctx context.Context) error {
	err := errors.Join(d.Synchronize(context.WithoutCancel(ctx)), d.Ops.Close())
	if d.Memory != nil {
		err = errors.Join(err, d.Memory.Close(context.WithoutCancel(ctx)))
	}
	return errors.Join(err, d.Context.Close())
}
