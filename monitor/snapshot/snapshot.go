package snapshot

// Snapshot is the memory of one or more devices, and how it came to be so.
type Snapshot struct {
	Segments []Segment
	// Traces are the histories by the device's ordinal. A device without one has an empty one.
	Traces []Trace
	// Settings are shown as they are, in this order: the allocator's configuration.
	Settings []Setting
}

// Setting is a line of the allocator's configuration.
type Setting struct {
	Name string
	// Value is a string, a bool, an int, an int64, a uint64, a float64 or nil.
	Value any
}

// Segment is a range of addresses that is held from the driver.
type Segment struct {
	Device  int // ordinal
	Address uint64
	Bytes   int64
	// Stream is the handle of the CUDA stream that the memory belongs to; 0 is the default stream.
	Stream uint64
	// Small segments hold small requests only; the viewer tells them apart.
	Small bool
	// Expandable segments grow and shrink by pages: their events are Map and Unmap. Others come and go whole: Reserve and
	// Release.
	Expandable bool
	Stack      Stack // of the request that made it; may be nil
	Blocks     []Block
}

// Block is a part of a segment.
type Block struct {
	Address        uint64
	Bytes          int64
	RequestedBytes int64 // of them, as the program asked for; 0 where nothing is live
	State          State
	Stack          Stack // of the allocation; may be nil
}

// State is whether a block's memory is in use.
type State uint8

// The states.
const (
	// Free memory serves the next request: cached by a stream, or free in the pool.
	Free State = iota
	// Live memory is in a buffer that was not freed.
	Live
	// Pending memory was freed, while uses that were announced on other streams have not finished.
	Pending
)

// Trace is the history of a device, the oldest event first.
type Trace []Event

// Event is something that happened to memory.
type Event struct {
	Action  Action
	Address uint64 // 0 for OutOfMemory and Mark
	Bytes   int64
	Stream  uint64 // as Segment.Stream
	Micros  int64  // microseconds since the epoch of Unix
	Stack   Stack  // may be nil
	// DeviceFreeBytes are free on the device where Action is OutOfMemory.
	DeviceFreeBytes int64
}

// Action is the kind of an event.
type Action uint8

// The actions.
const (
	// Alloc hands a block to the program.
	Alloc Action = iota
	// FreeRequested is the program's free of a block.
	FreeRequested
	// FreeCompleted is the end of the last use of a freed block; without uses on other streams it follows FreeRequested at
	// once.
	FreeCompleted
	// Reserve takes a whole segment from the driver, Release returns one.
	Reserve
	Release
	// Map takes a part of an expandable segment from the driver, Unmap returns one.
	Map
	Unmap
	// OutOfMemory is a request that found no memory.
	OutOfMemory
	// Mark is a moment at which a snapshot was taken.
	Mark
)

// Frame is a place in the program.
type Frame struct {
	File     string
	Line     int
	Function string
}

// Stack is the frames of a place, the innermost first. Stacks with the same backing array are written once, so that a
// history of many events from few places stays small.
type Stack []Frame
