// Package drivertest is the conformance suite of cudadrv. It checks that a driver does what cudadrv and CUDA document. It does
// not depend on timing or a second device, so it runs on real hardware as well as on the simulator and on wrappers. The
// expected results are from an H200 (driver 580, CUDA 13.0).
//
// It uses a few dozen granules of memory and frees them. It does not test behaviour that real hardware leaves undefined, such
// as the use of a destroyed stream.
//
// Kernels are PTX text, which the simulator neither compiles nor executes: the suite checks their results, and errors of their
// instructions, on other drivers only. It recognises the simulator by Info.Driver, which wrappers keep, so other drivers need
// no option.
package drivertest
