// Package baseline plays a trace without vram, in the two ways that a program without an allocator has: a driver call for each
// request, and a pool of its own by exact size.
//
// Plain calls cuMemAlloc for each allocation and cuMemFree for each free, which waits for all work on the device. BySize keeps
// freed memory in a list for each exact size, and takes an allocation from the list of its size or else from the driver. It
// never returns memory before the end, so it holds, of each size, the largest number of buffers that were live at once.
//
// Both play the events in program order, in one goroutine, and free the trace's leftovers at the end of each round. An
// allocation that finds no memory counts as failed, and its free is left out. The figures are exact: only the time in driver
// calls is the driver's, modelled where the driver is.
//
// # Concurrency properties
//
// Run blocks until the rounds are played, or its context ends.
package baseline
