package cudadrv

import "time"

// TimedEvents is implemented by devices whose events can tell the time between them; it works where Info has the
// capability EventTiming, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
type TimedEvents interface {
	// EventCreateTimed makes an event with timing, for all calls that take one. Recording it costs more than recording an event
	// without timing.
	EventCreateTimed() (Event, error)
	// EventElapsedTime is the device's time between the last records of two events with timing, to half a microsecond.
	// CUDA_ERROR_NOT_READY: the work before one of them has not finished.
	EventElapsedTime(start, end Event) (time.Duration, error)
}
