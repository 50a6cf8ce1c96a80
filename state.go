package vram

import "fmt"

// DeviceState is how far the life of a device has come.
type DeviceState uint8

// The states of a device.
const (
	DeviceNotOpen DeviceState = iota // nil, or the zero Device
	DeviceUnused                     // open, and no call has used the GPU yet
	DeviceInUse
	DeviceClosed // Close was called
)

// String is the state's name.
func (s DeviceState) String() string {
	switch s {
	case DeviceNotOpen:
		return "not open"
	case DeviceUnused:
		return "unused"
	case DeviceInUse:
		return "in use"
	case DeviceClosed:
		return "closed"
	}
	return fmt.Sprintf("DeviceState(%d)", uint8(s))
}

// State is how far the life of the device has come. It takes no turn and is no use of the device.
func (d *Device) State() DeviceState {
	switch {
	case !d.opened():
		return DeviceNotOpen
	case d.closed.Load():
		return DeviceClosed
	case d.engine.Load() == nil:
		return DeviceUnused
	default:
		return DeviceInUse
	}
}
