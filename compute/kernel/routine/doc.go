// Package routine writes kernels that no expression of package compute/kernel/expr describes: reads and sums at places that a
// tensor of indices has, random numbers, and steps of an optimizer over many tensors.
//
// It is pure: a Kernel in, its text out. Package ops launches them.
//
// # Kernels
//
// A Kernel has all that the text depends on: types, number of dimensions, width of indices. Sizes, strides, addresses and all
// numbers are parameters of the launch. Blocks have BlockThreads threads, and the grid has one dimension, x. The parameters of
// each kind are with the kind: count is a number of elements, an operand is its address, the offset of its first element from
// that address, and a stride for each dimension, all in elements. A size is of 32 bits, or of 64 where the kernel is Wide; an
// address has 64.
//
// # Indices
//
// An index that is out of range ends the launch by a trap, before anything is read or written with it.
//
// # Random numbers
//
// Numbers come from Philox 4x32-10 (J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel Random Numbers: As Easy as 1, 2, 3). The
// function Philox computes them on the host.
package routine
