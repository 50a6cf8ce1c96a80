// Package vramtest lets a user's own tests run on a simulated device that reports every hazard: kernels that touch
// memory which is not mapped, was freed or never allocated, or that other work touches without an order. It
// needs no GPU. The package comment of cudadrv/hazard defines hazards and the order of work.
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
// A kernel is a duration on a stream, the ranges that it reads and those that it writes. Nothing is computed, but with
// the option Kernels: then kernels from PTX run on real bytes, and their own mistakes fail the test
// (docs/kernels-in-tests.md). Time is virtual: it moves by Advance and by calls that wait. Programs that make driver
// calls of their own make them on Device.GPU, where kernels, events, copies and waits are seen; code under test that
// takes a cudadrv.Device is given that.
//
// # Findings
//
// Hazards are found by order, not by luck: two kernels on two streams that touch one buffer without an event between them
// are reported even if the one has long finished when the other begins. Each report names both
// places in the program, and where the buffer was allocated and freed.
//
// # Concurrency properties
//
// All methods may be called from any goroutine of the test, until the test ends. Importing the package starts nothing.
package vramtest
