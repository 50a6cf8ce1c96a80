// Package gorgonia is the driver for programs that use gorgonia.org/cu: a cudadrv.Device in the context that the program has
// made there, and conversions between the handles of both. It is built with the tag gorgonia, with cgo, on Linux on amd64 and
// arm64; otherwise the package is empty. `make build-gorgonia` finds CUDA's headers and library, and `make gorgonia-carry`
// needs neither.
//
// A program that does not use gorgonia.org/cu is better served by cudadrv/dynamic: that one needs neither cgo nor
// the toolkit.
//
// # CUDA calls
//
// A Device here is one of cudadrv/dynamic in the program's context: both packages call the one libcuda that the process has
// loaded, so they share memory, streams and events. A call through cudadrv/dynamic allocates nothing; a call with a result
// through gorgonia.org/cu does. For states, errors and concurrency see cudadrv/dynamic.
//
// # Side effects of gorgonia.org/cu
//
// Importing it calls cuInit, and ends the program where that fails. A program that is built with it does not start on a
// machine without libcuda.so.1. So no package that is built without the tag imports this one.
package gorgonia
