// Package vramtest opens a simulated device for a test and reports every hazard: a kernel that accesses memory that is
// not mapped, was freed or never allocated, or that other work accesses without an order. It needs no GPU. The package
// comment of cudadrv/hazard defines hazards and the order of work.
//
//	func TestStep(t *testing.T) {
//		dev := vramtest.Open(t)
//		s := dev.Stream()
//		x, err := s.Alloc(1 << 20)
//		...
//		dev.Launch(s, time.Millisecond, vramtest.Writes(x))
//		...
//	} // a hazard, and a buffer that was not freed, fail the test here
//
// # Simulation
//
// A kernel is a duration on a stream, and the ranges that it reads and writes. It computes nothing, unless the option
// Kernels is set: then kernels from PTX run on real bytes, and their own mistakes fail the test
// (docs/kernels-in-tests.md). Time is virtual: Advance and calls that wait move it. Pass Device.GPU to code under test
// that makes driver calls of its own: its kernels, events, copies and waits are checked.
//
// # Findings
//
// Hazards are found by order, not by luck: two kernels on two streams that access one buffer without an event between
// them are reported even if one has finished long before the other begins. Each report names both places in the
// program, and the places where the buffer was allocated and freed.
//
// # Concurrency properties
//
// All methods may be called from any goroutine of the test, until the test ends. Importing the package starts nothing.
package vramtest
