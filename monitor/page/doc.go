// Package page shows the memory of devices live, on a web page: where it lies by segment and state, how it changed over the
// last minutes, which streams have it, which requests wait for it, and what the allocations cost. It is read-only.
//
//	http.Handle("/debug/vram/", page.Handler(dev))
//
// # Words
//
// A sample is the figures of all devices at one time. The sampler takes one in each interval and keeps the last of them for the
// time line: the history. A viewer is an open page, or a request for the stream of events.
//
// # Addresses
//
// They are relative to the address at which the handler is mounted. All but the page itself answer with JSON or an event
// stream; a field whose name ends in Bytes is in bytes, one in Seconds in seconds.
//
//	./             the page
//	stats.json     the newest sample: Sample
//	history.json   the history: History
//	map.json       the memory map of a device: Map. Parameters: device, its index (0); resolution, in bytes (0: as vram.Device.MemoryMap)
//	calls.json     the call stacks with the most live bytes: Calls. Parameter: device
//	events         an event stream: "history" with the History, and then "sample" with each Sample
//
// An error is {"error": text} with a status of 400 and above: 410 for the map of a closed device, 503 for one that cannot be
// read.
//
// # Cost
//
// Without a viewer and without requests, the page reads nothing and runs no goroutine. All viewers share one sampler, and one memory
// map for each interval. A sample takes the same turns as vram.Device.Stats; a map the same as vram.Device.MemoryMap, which
// visits every block. While requests wait, a sample takes the turns of vram.Device.Waiters, too. Call stacks take none: they
// come from the device's own samples, with vram.Config.SampleBytes set. With vram.Config.Processes, a sample calls that, and waits a
// quarter of a second at most.
//
// # Safety
//
// The page loads nothing from other origins, and a content security policy enforces that. Cross-site requests of browsers are
// refused (403), so that no other origin reads the figures. The page shows tags and names of tenants: a service that others
// can reach needs its own authentication before the handler.
//
// # Concurrency properties
//
// A Page has one goroutine while it has viewers: the sampler, which ends with the last of them, and with Close. The next
// sample replaces one that a viewer has not read, so a slow viewer delays no other.
package page
