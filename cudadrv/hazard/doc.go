// Package hazard wraps a driver and reports work that touches memory which it must not: memory that is not mapped,
// not allocated or freed, that other work touches without an order, and memory that the allocator hands out or
// unmaps too early. What is a hazard, and what orders work, is in the package comment of cudadrv/hazard/core.
//
// # How it is used
//
// The program and the allocator open the device by different doors: the program by the Driver that Wrap makes, the
// allocator by that Driver's Allocator. Memory that is mapped through the second is the allocator's; the program's kernels must
// stay within its buffers. Of those the Checker is told by Allocated and Freed.
//
//	checked := hazard.Wrap(sim.New(sim.Config{}))
//	dev, err := vram.Open(vram.Config{Driver: checked.Allocator(), Observer: ...})
//	gpu, err := checked.View(0) // kernels, events, copies
//
// The package vramtest does this for tests.
//
// Only what is done through these devices is seen. What a kernel touches nobody sees: Device.Kernel queues a simulated
// one that says so. Memsets and copies are accesses by themselves. Calls by which a program learns of progress past the driver
// (host functions, words in memory, the driver's own pool) are taken out of the device's capabilities: what they order
// could not be seen.
//
// # Composition
//
// Any driver can be wrapped, and the result be wrapped in turn: fault.Wrap(checked.Allocator()) makes the allocator's
// calls fail before the checker sees them. Kernel needs a device that has Launch, as cudadrv/sim's.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. A call is booked in the order in which the device got it. Calls that
// wait for the device hold nobody up, except that cuMemFree holds up cuMemAlloc.
package hazard
