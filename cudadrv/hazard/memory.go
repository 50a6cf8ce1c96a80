package hazard

import (
	"github.com/go-vram/vram/cudadrv"
)

// MemAlloc adds memory: the allocator's if this is its view, else the program's own.
func (d *Device) MemAlloc(bytes int64) (p cudadrv.Ptr, err error) {
	c := d.checker
	c.plain.Lock()
	defer c.plain.Unlock()
	err = c.call(func() (err error) { p, err = d.inner.MemAlloc(bytes); return err }, func() {
		c.segment[p] = bytes
		c.core.Mapped(p, bytes, d.by)
	})
	return p, err
}

// MemFree waits for the device and takes memory away.
func (d *Device) MemFree(p cudadrv.Ptr) error {
	c := d.checker
	from := d.driver.helpers.Load().Here(1)
	c.plain.Lock()
	defer c.plain.Unlock()
	if err := d.wait(Program, d.all, func() error { return d.inner.MemFree(p) }); err != nil {
		return err
	}
	c.do(func() {
		c.core.Unmapped(p, c.segment[p], d.by, from)
		delete(c.segment, p)
	})
	return nil
}

// MemSetAccess adds memory, as MemAlloc: before it mapped memory cannot be touched.
func (d *Device) MemSetAccess(p cudadrv.Ptr, bytes int64) error {
	c := d.checker
	return c.call(func() error { return d.inner.MemSetAccess(p, bytes) }, func() { c.core.Mapped(p, bytes, d.by) })
}

// MemUnmap takes memory away. It does not wait, so all work on the memory must be known to be over.
func (d *Device) MemUnmap(p cudadrv.Ptr, bytes int64) error {
	c := d.checker
	from := d.driver.helpers.Load().Here(1)
	err := c.call(func() error { return d.inner.MemUnmap(p, bytes) }, func() { c.core.Unmapped(p, bytes, d.by, from) })
	if err == nil {
		d.unmappedForPeers(p, bytes, from)
	}
	return err
}
