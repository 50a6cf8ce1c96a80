// Package history records the requests of a device on demand: the latest allocations and frees, and the growth, trims,
// refusals and mappings between them. A recording can be replayed (vram replay).
//
//	recorder, err := history.Start(device, history.Options{Events: 1 << 16, Stacks: true})
//	...
//	recorder.Stop()
//	err = recorder.WriteTrace(file)
//
// During a recording, each allocation and free takes its call stack, a microsecond or two; before and
// after it they cost nothing more.
//
// # Words
//
// A ring keeps the last Options.Events events; Snapshot.LostCount counts the older ones. Events are ordered by their numbers:
// at one address, an allocation has a higher number than the free of its predecessor.
//
// # A trace
//
// WriteTrace writes the text that internal/trace describes. If the ring lacks the allocation of a buffer, because the buffer
// lived at Start or the event was lost, the trace allocates it at its beginning, provided that the buffer was freed in the
// trace or lived at its end. A free that Device.Observe did not report comes before the next allocation of its address;
// Snapshot counts these, too. A buffer of 0 bytes has 1 byte in the trace.
//
// # States of a recorder
//
//	recording --Stop, or Device.Close--> stopped
//
// # Concurrency properties
//
// All methods may be called from any goroutine. An event costs one atomic addition and one store, and no wait.
package history
