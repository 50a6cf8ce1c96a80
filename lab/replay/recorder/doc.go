// Package recorder watches a replay: the bytes that the device holds from the driver at each event, and a snapshot of the memory at its end
// with the history of the last round.
//
// # Words
//
// A line is a line of the trace's file: event i stands on line i+2, behind the header. Reserved bytes are physical memory: handles that
// were made and not released, and plain memory.
//
// # How it watches
//
// Attach puts a wrapper around the replay's driver, which is told of memory that is made, mapped, unmapped and released, and takes
// the device's Observer, which is told of a buffer before its caller has it and before its memory can be used again: in
// that order memory is never free where the history has it live. The replay's own Observe says which event is under way. A free
// that ends at once is two events of the history, as there.
//
// # Concurrency properties
//
// The driver is called from goroutines of the allocator, beside the replay: one lock guards all. It is no part of the allocator, and a
// replay that is recorded says nothing about time.
package recorder
