package cudadrv

// Viewed is implemented by wrappers for which calls of the program are not those of the allocator, as wrappers that count the
// allocator's calls.
type Viewed interface {
	// ProgramView is the device for calls of the program. It has the same memory, streams and events.
	ProgramView() Device
}

// ProgramView is the device for calls of the program, for a device that the allocator has.
func ProgramView(dev Device) Device {
	for {
		v, ok := dev.(Viewed)
		if !ok {
			return dev
		}
		next := v.ProgramView()
		if next == dev {
			return dev
		}
		dev = next
	}
}
