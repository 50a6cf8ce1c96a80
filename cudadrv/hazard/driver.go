package hazard

import (
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
)

var (
	_ cudadrv.Driver = (*Driver)(nil)
	_ cudadrv.Driver = (*door)(nil)
)

// Driver is a driver whose devices are checked. Make one with Wrap.
type Driver struct {
	inner   cudadrv.Driver
	helpers atomic.Pointer[site.Helpers] // left out of places; nil: none

	mu       sync.Mutex // guards the fields below
	checkers map[int]*Checker
}

// Wrap returns a driver that behaves as inner and checks its calls. It makes no call.
func Wrap(inner cudadrv.Driver) *Driver {
	return &Driver{inner: inner, checkers: map[int]*Checker{}}
}

// SetHelpers sets the functions that the places in reports leave out, from now on; nil: none.
func (d *Driver) SetHelpers(h *site.Helpers) { d.helpers.Store(h) }

// Unwrap returns the wrapped driver.
func (d *Driver) Unwrap() cudadrv.Driver { return d.inner }

// Name returns the wrapped driver's name.
func (d *Driver) Name() string { return d.inner.Name() }

// DeviceCount returns the wrapped driver's count.
func (d *Driver) DeviceCount() (int, error) { return d.inner.DeviceCount() }

// Open opens a device for the program; see View.
func (d *Driver) Open(ordinal int) (cudadrv.Device, error) { return d.open(ordinal, Program) }

// View opens a device with the methods of this package's Device. The caller closes it.
func (d *Driver) View(ordinal int) (*Device, error) {
	inner, err := d.inner.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return newDevice(inner, d, ordinal, Program), nil
}

// Allocator returns the same driver for the allocator: memory mapped through it is used by buffers.
func (d *Driver) Allocator() cudadrv.Driver { return &door{d} }

// Checker returns the checker of the device with that ordinal. It outlives the device.
func (d *Driver) Checker(ordinal int) *Checker {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.checkers[ordinal]
	if c == nil {
		c = newChecker()
		d.checkers[ordinal] = c
	}
	return c
}

func (d *Driver) open(ordinal int, by Host) (cudadrv.Device, error) {
	inner, err := d.inner.Open(ordinal)
	if err != nil {
		return nil, err
	}
	dev := newDevice(inner, d, ordinal, by)
	if m, ok := inner.(cudadrv.Modelled); ok {
		return &modelledDevice{Device: dev, Modelled: m}, nil
	}
	return dev, nil
}

// modelledDevice passes the modelled time through.
type modelledDevice struct {
	*Device
	cudadrv.Modelled
}

// door is the allocator's way to the devices.
type door struct{ driver *Driver }

func (d *door) Unwrap() cudadrv.Driver    { return d.driver.inner }
func (d *door) Name() string              { return d.driver.Name() }
func (d *door) DeviceCount() (int, error) { return d.driver.DeviceCount() }
func (d *door) Open(ordinal int) (cudadrv.Device, error) {
	return d.driver.open(ordinal, Allocator)
}
