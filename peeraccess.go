package vram

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/pool"
)

// ErrNoPeerAccess reports that a device cannot reach the memory of another one: the hardware has no way, the driver has no call for
// it, or the memory is plain segments.
var ErrNoPeerAccess = pool.ErrNoPeerAccess

// CanAccessPeer reports whether kernels of the device can reach memory of another one, once EnablePeerAccess was called. It is a use
// of both devices. Errors: ErrNotOpen, ErrClosed, and the driver's.
func (d *Device) CanAccessPeer(peer *Device) (bool, error) {
	e, other, err := enginesOf(d, peer)
	if err != nil {
		return false, err
	}
	return e.reaches(other)
}

// EnablePeerAccess lets kernels of this device read and write the memory of another one, which is opened with the same driver: all
// that is mapped there, now and later. Then cuda.Context.Launch takes buffers of that device. It works in one direction, as
// cuCtxEnablePeerAccess does, and is idempotent; on one GPU there is nothing to do. Mappings there make no more driver calls than
// before; one that cannot be made accessible to all devices fails, and nothing of it is left. Access lasts as long as the other
// device is open. Copies between devices (cuda.Context.CopyPeer) need none of this. It is a use of both devices, and waits for
// the driver.
//
// Either device may be closed first. The one that has the memory waits in its Close for the work of the other one that
// cuda.Context.Launch has put on its buffers; for work that was submitted past it, the program waits.
//
// Errors: ErrNoPeerAccess, ErrNotOpen, ErrClosed, and the driver's, with which memory that is mapped later is not accessible; some of
// the present memory may be.
func (d *Device) EnablePeerAccess(peer *Device) error {
	e, other, err := enginesOf(d, peer)
	if err != nil {
		return err
	}
	ordinal, its := e.driver.Info().Ordinal, other.driver.Info().Ordinal
	if ordinal == its {
		e.peers.Reach(&other.peers)
		return nil
	}
	can, err := e.reaches(other)
	if err != nil {
		return err
	}
	if !can {
		return fmt.Errorf("%w from device %d to the memory of device %d", ErrNoPeerAccess, ordinal, its)
	}
	err = other.pool.EnablePeer(ordinal)
	switch {
	case errors.Is(err, pool.ErrClosed):
		return deviceClosed()
	case err != nil:
		return failed(fmt.Sprintf("access from device %d to the memory of device %d", ordinal, its), err)
	}
	e.peers.Reach(&other.peers)
	return nil
}

// enginesOf are the engines of two devices that are used together.
func enginesOf(d, peer *Device) (e, other *engine, err error) {
	if e, err = d.use(); err != nil {
		return nil, nil, err
	}
	if !peer.opened() {
		return nil, nil, &NotOpenError{Argument: "peer"}
	}
	if other, err = peer.use(); err != nil {
		return nil, nil, err
	}
	if d.closed.Load() || peer.closed.Load() {
		return nil, nil, deviceClosed()
	}
	return e, other, nil
}

// reaches asks the driver whether kernels can reach memory of another device.
func (e *engine) reaches(other *engine) (bool, error) {
	peers, ok := e.driver.(cudadrv.Peers)
	if !ok || !e.driver.Info().Capabilities.Has(cudadrv.PeerAccess) {
		return false, nil
	}
	if !other.driver.Info().Capabilities.Has(cudadrv.PeerAccess) {
		return false, nil
	}
	can, err := peers.DeviceCanAccessPeer(other.driver.Info().Ordinal)
	if err != nil {
		return false, failed("", err)
	}
	return can, nil
}
