package sim

import (
	"encoding/binary"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.SharedEvents = (*Device)(nil)

// EventCreateShared makes an event that can have a name for others.
func (d *Device) EventCreateShared() (cudadrv.Event, error) {
	return d.newEvent(event{shared: true}, cudadrv.EventSharing)
}

// IpcGetEventHandle returns the event's name: the UUID of the GPU, and the number of the event.
func (d *Device) IpcGetEventHandle(e cudadrv.Event) (cudadrv.EventDescriptor, error) {
	const c = call.IpcGetEventHandle
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	var name cudadrv.EventDescriptor
	if err := d.enterWith(c, cudadrv.EventSharing); err != nil {
		return name, err
	}
	ev, err := g.eventNamed(c, e)
	if err != nil {
		return name, err
	}
	if !ev.shared {
		return name, fail(c, cudadrv.InvalidHandle, "event %#x was not made to be shared", uint64(e))
	}
	copy(name[:], g.info.UUID[:])
	binary.LittleEndian.PutUint64(name[len(g.info.UUID):], uint64(e))
	return name, nil
}

// IpcOpenEventHandle makes another id of an event of any GPU of the Driver, also of this one: there are no other processes
// here that could open it.
func (d *Device) IpcOpenEventHandle(name cudadrv.EventDescriptor) (cudadrv.Event, error) {
	const c = call.IpcOpenEventHandle
	return value(d, c, cudadrv.EventSharing, func(g *gpu) (cudadrv.Event, error) {
		var of cudadrv.UUID
		copy(of[:], name[:])
		for _, other := range g.driver.gpus {
			if ev, ok := other.events[cudadrv.Event(binary.LittleEndian.Uint64(name[len(of):]))]; ok && of == other.info.UUID {
				return g.keep(ev), nil
			}
		}
		return 0, fail(c, cudadrv.InvalidHandle, "no event of that name")
	})
}
