package vram

// DeviceState is how far the life of a device has come.
type DeviceState uint8

// The states of a device.
const (
	DeviceNotOpen DeviceState = iota // nil, or the zero Device
	DeviceUnused                     // open, and no call has used the GPU yet
	DeviceInUse
	DeviceClosed // Close was called
)

var deviceStateNames = [...]string{ //nolint:gochecknoglobals // constant table
	DeviceNotOpen: "not open", DeviceUnused: "unused", DeviceInUse: "in use", DeviceClosed: "closed",
}

// String is the state's name.
func (s DeviceState) String() string { return nameOf(deviceStateNames[:], int(s), "DeviceState") }

// MarshalText implements encoding.TextMarshaler: the name.
func (s DeviceState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The error is a *ConfigError.
func (s *DeviceState) UnmarshalText(text []byte) error {
	i, err := parseName(deviceStateNames[:], string(text), "DeviceState", "not open, unused, in use or closed")
	if err == nil {
		*s = DeviceState(i)
	}
	return err
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
