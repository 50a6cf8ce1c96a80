package cudadrv

// Viewed is implemented by wrappers that separate calls of the program from calls of the allocator, such as wrappers that count
// the latter.
type Viewed interface {
	// ProgramView is the device for calls of the program. It has the same memory, streams and events.
	ProgramView() Device
}

// ProgramView returns the device for calls of the program, for a device that the allocator has.
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
