package kernels

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
)

// View is a program's own handle to a device, for kernels, events and copies. The allocator has another one, so that its
// statistics count only its calls.
type View struct {
	cudadrv.Device
	*Kernels
}

// OpenView opens the device; the caller closes the view.
func OpenView(driver cudadrv.Driver, ordinal int) (*View, error) {
	device, err := driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	k, err := Open(device)
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return &View{device, k}, nil
}

// Close closes the view. It waits for the device.
func (v *View) Close() error { return errors.Join(v.Kernels.Close(), v.Device.Close()) }
