// Package gorgonia is the driver for programs that use gorgonia.org/cu: a cudadrv.Device in the context that the
// program has made there, and conversions between the handles of both. It is built with the tag gorgonia, with
// cgo, on Linux on amd64 and arm64; otherwise the package is empty. `make build-gorgonia` finds what it needs,
// and `make gorgonia-carry` needs neither CUDA's headers nor its library.
//
// A program that does not use gorgonia.org/cu is better served by cudadrv/dynamic: that one needs neither cgo nor
// the toolkit.
//
// # Who calls CUDA
//
// A Device here is one of cudadrv/dynamic in the program's context: both packages call the one libcuda that the process has loaded, so
// memory, streams and events of the one are those of the other. A call by way of cudadrv/dynamic allocates nothing; by way of
// gorgonia.org/cu one with a result does. States, errors and what holds for goroutines are as written there.
//
// # What gorgonia.org/cu does by itself
//
// Importing it calls cuInit, and ends the program where that fails. A program that is built with it does not start on a
// machine without libcuda.so.1. So no package that is built without the tag imports this one.
package gorgonia
