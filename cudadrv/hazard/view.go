package hazard

import "github.com/go-vram/vram/cudadrv"

var _ cudadrv.Viewed = (*Device)(nil)

// ProgramView returns the device for calls of the program, also where this is the allocator's. It is not closed on its own.
func (d *Device) ProgramView() cudadrv.Device {
	if d.by == Program {
		return d
	}
	return &Device{Device: d.Device, inner: d.inner, driver: d.driver, checker: d.checker, by: Program}
}
