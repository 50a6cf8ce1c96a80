package share

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// pages is a handle, mapped whole at its own addresses. Each completed step is noted, so that release undoes only these, and
// continues after a failure.
type pages struct {
	home    streams.Submitter // of the device
	device  cudadrv.Device
	bytes   int64
	charged bool           // they count in the device's limit and statistics
	handle  cudadrv.Handle // 0: none
	at      cudadrv.Ptr    // 0: no addresses
	mapped  bool
}

// charge counts the bytes in the limit and the statistics of the device, before the driver is asked for a handle.
func (p *pages) charge() error {
	if err := p.home.Charge(p.bytes); err != nil {
		return err
	}
	p.charged = true
	return nil
}

// place reserves addresses and maps the handle there. On an error it undoes its steps, the handle included, as far as the
// driver permits.
func (p *pages) place() (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, p.release())
		}
	}()
	if p.at, err = p.device.MemAddressReserve(p.bytes); err != nil {
		return err
	}
	if err = p.device.MemMap(p.at, p.bytes, p.handle); err != nil {
		return err
	}
	p.mapped = true
	return p.device.MemSetAccess(p.at, p.bytes)
}

// release undoes the completed steps. No work of the device may use the memory any more. It may be called again.
func (p *pages) release() error {
	err := p.unmap()
	if p.charged && p.handle == 0 && !p.mapped { // the driver has the memory
		p.charged = false
		p.home.Uncharge(p.bytes)
	}
	return err
}

func (p *pages) unmap() error {
	if p.mapped {
		if err := p.device.MemUnmap(p.at, p.bytes); err != nil {
			return errors.Join(err, p.releaseHandle()) // the mapping keeps the memory
		}
		p.mapped = false
	}
	failed := p.releaseHandle()
	if p.at != 0 {
		if err := p.device.MemAddressFree(p.at, p.bytes); err != nil {
			return errors.Join(failed, err)
		}
		p.at = 0
	}
	return failed
}

func (p *pages) releaseHandle() error {
	if p.handle == 0 {
		return nil
	}
	err := p.device.MemRelease(p.handle)
	if err == nil {
		p.handle = 0
	}
	return err
}
