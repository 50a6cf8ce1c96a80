package bytecheck

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/meter"
)

// device is the part of a driver's device that the checker needs.
type device interface {
	cudadrv.Device
	cudadrv.HostMemory
}

// ErrNoHostMemory says that a driver cannot copy to the host, so that nothing could be checked.
var ErrNoHostMemory = errors.New("bytecheck: the driver's device has no host memory")

// House is a device that is opened through vram and, for the checker's own calls, once more. Close it.
type House struct {
	*vram.Device
	own   device
	calls *metered
	fill  []cudadrv.Ptr // plain allocations that take room
}

// metered is a driver whose device counts its calls.
type metered struct {
	cudadrv.Driver
	opened atomic.Pointer[meter.Device]
}

// Open opens the device and counts its calls from zero.
func (m *metered) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := m.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	counted := meter.New(dev)
	m.opened.Store(counted)
	return counted, nil
}

// Open opens config's device with config.Driver for vram, and with the driver own, which must be the same one or one below it,
// for the checker. Both use one context, which lives as long as either. Errors: ErrNoHostMemory, as vram.Open, and the
// driver's.
func Open(own cudadrv.Driver, config vram.Config) (*House, error) {
	opened, err := own.Open(config.Ordinal)
	if err != nil {
		return nil, fmt.Errorf("bytecheck: opening the checker's own device: %w", err)
	}
	dev, ok := opened.(device)
	if !ok || !opened.Info().Capabilities.Has(cudadrv.PinnedHost) {
		return nil, errors.Join(ErrNoHostMemory, opened.Close())
	}
	calls := &metered{Driver: config.Driver}
	config.Driver = calls
	served, err := vram.Open(config)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return &House{Device: served, own: dev, calls: calls}, nil
}

// Calls is how often vram has made the driver call of that name, cuMemUnmap say.
func (h *House) Calls(name string) uint64 {
	if dev := h.calls.opened.Load(); dev != nil {
		for _, c := range dev.ByCall() {
			if c.Func == name {
				return c.Calls
			}
		}
	}
	return 0
}

// FreeBytes returns the driver's count of free bytes on the device.
func (h *House) FreeBytes() (int64, error) {
	free, _, err := h.own.MemGetInfo()
	return free, err
}

// Fill makes plain allocations until at most leaveBytes are free, or 2 MiB cannot be allocated. It returns the allocated
// bytes. Empty frees them.
func (h *House) Fill(leaveBytes int64) (takenBytes int64, err error) {
	const least = 2 << 20 // least length of a plain allocation
	for bytes := int64(4 << 30); bytes >= least; {
		free, err := h.FreeBytes()
		if err != nil {
			return takenBytes, err
		}
		if free-bytes < leaveBytes {
			bytes /= 2
			continue
		}
		p, err := h.own.MemAlloc(bytes)
		if err != nil {
			if !errors.Is(err, cudadrv.OutOfMemory) {
				return takenBytes, err
			}
			bytes /= 2
			continue
		}
		h.fill = append(h.fill, p)
		takenBytes += bytes
	}
	return takenBytes, nil
}

// Empty frees the allocations of Fill.
func (h *House) Empty() error {
	var failed []error
	for _, p := range h.fill {
		failed = append(failed, h.own.MemFree(p))
	}
	h.fill = nil
	return errors.Join(failed...)
}

// Close closes vram's device, frees the allocations of Fill, and closes the checker's own device.
func (h *House) Close() error {
	return errors.Join(h.Device.Close(), h.Empty(), h.own.Close())
}
