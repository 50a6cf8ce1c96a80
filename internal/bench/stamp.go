package bench

import (
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// stampedDriver notes when mapped memory was last made accessible: the last call of a driver job, behind which requests are
// answered.
type stampedDriver struct {
	cudadrv.Driver
	stamp atomic.Pointer[time.Time]
}

// Open wraps the device.
func (d *stampedDriver) Open(ordinal int) (cudadrv.Device, error) {
	device, err := d.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return &stampedDevice{Device: device, driver: d}, nil
}

// mapped is when that was; the zero time before the first.
func (d *stampedDriver) mapped() time.Time {
	if at := d.stamp.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

type stampedDevice struct {
	cudadrv.Device
	driver *stampedDriver
}

// MemSetAccess passes the call on and notes when it returned.
func (d *stampedDevice) MemSetAccess(p cudadrv.Ptr, bytes int64) error {
	err := d.Device.MemSetAccess(p, bytes)
	now := time.Now()
	d.driver.stamp.Store(&now)
	return err
}
