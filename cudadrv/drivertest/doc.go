// Package drivertest is the conformance suite of cudadrv: what every Driver promises, by cudadrv's
// doc and by CUDA, held against one driver. It knows no timing and no more than one device, so it
// runs on real hardware as well as on the simulator and on wrappers; it was laid out along what an
// H200 answers (driver 580, CUDA 13.0).
//
// It takes a few dozen granules of memory and gives them back. What real hardware leaves undefined, such as
// the use of a destroyed stream, is not asked here.
//
// Kernels are PTX text, which the simulator neither compiles nor performs: what they write, and mistakes in their instructions, are
// looked at elsewhere only. The suite knows the simulator by Info.Driver, which wrappers keep, so a driver that runs kernels is
// held to their results without being asked.
package drivertest
