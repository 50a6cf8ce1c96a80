// Package recorder watches a replay: the bytes that the device holds from the driver at each event, and a snapshot of the
// memory at its end with the history of the last round.
//
// # Words
//
// A line is a line of the trace's file: event i is on line i+2, after the header. Reserved bytes are physical memory:
// unreleased handles, and plain memory.
//
// # How it watches
//
// Attach wraps the replay's driver, to learn of memory that is created, mapped, unmapped and released, and uses the device's
// Observer, which learns of a buffer before its caller has it and before its memory can be used again: in that order the
// history never has memory live that is free. The replay's own Observe says which event runs. A free that ends at once is two
// events of the history, as there.
//
// # Concurrency properties
//
// The driver is called from goroutines of the allocator, concurrently with the replay: one lock guards all. It is no part of
// the allocator, and a recorded replay measures no time.
package recorder
