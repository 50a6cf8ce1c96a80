// Package history records the requests of a device on demand: the latest allocations and frees, and the growth, trims,
// refusals and mappings between them. A recording can be replayed (vram replay).
//
//	recorder, err := history.Start(device, history.Options{Events: 1 << 16, Stacks: true})
//	...
//	recorder.Stop()
//	err = recorder.WriteTrace(file)
//
// While it records, each allocation and free takes its call stack, a microsecond or two; before and after,
// nothing is left of it.
//
// # Words
//
// A ring keeps the last Options.Events events; the number of the older ones is Snapshot.LostCount. An event has a number, by
// which it is ordered: of one address no allocation is numbered before the free of its predecessor.
//
// # A trace
//
// WriteTrace writes the text that internal/trace describes. Buffers whose allocation is not in the ring, since they lived at
// Start or the event was lost, are allocated at the trace's beginning, if they were freed in it or lived
// at its end. A free that was not told (Device.Observe) comes before the next allocation of its address; Snapshot
// counts these, too. A buffer of 0 bytes is one of 1 byte.
//
// # States of a recorder
//
//	recording --Stop, or Device.Close--> stopped
//
// # Concurrency properties
//
// All methods may be called from any goroutine. Events are entered by one atomic addition and one store each: nobody waits.
package history
