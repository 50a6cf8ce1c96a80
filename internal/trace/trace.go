package trace

// Op is the kind of an event.
type Op uint8

// The two operations.
const (
	Alloc Op = iota
	Free
)

// String is the letter of the operation in a trace file.
func (o Op) String() string {
	if o == Alloc {
		return "a"
	}
	return "f"
}

// maxStreams bounds stream indices so that they fit an Event's 16 bits. Recordings have a handful;
// a device has at most a few thousand that mean anything.
const maxStreams = 1 << 16

// Event is one allocation or free in 16 bytes, so that four share a cache line of a replay.
type Event struct {
	Bytes  int64  // asked for; at least 1
	ID     uint32 // dense, from 0, in order of allocation
	Stream uint16 // Alloc: the buffer's stream; Free: the stream whose program frees it
	Op     Op
}

// Info sums up a trace.
type Info struct {
	EventCount    int
	AllocCount    int
	FreeCount     int
	StreamCount   int
	PeakLiveBytes int64 // largest sum of Bytes held at once
	LeftoverBytes int64 // held when the recording stopped
}

// Trace is a checked recording.
type Trace struct {
	Name   string  // of an embedded trace, or the file's base name without .csv and .gz
	Events []Event // in program order
	Micros []int64 // Micros[i] is when Events[i] happened, since the first event
	Info   Info
}

// Leftovers lists the ids that the trace allocates and never frees, in order of allocation.
func (t *Trace) Leftovers() []uint32 {
	freed := make([]bool, t.Info.AllocCount)
	for i := range t.Events {
		if t.Events[i].Op == Free {
			freed[t.Events[i].ID] = true
		}
	}
	var left []uint32
	for id, gone := range freed {
		if !gone {
			left = append(left, uint32(id))
		}
	}
	return left
}
