// Package kernelbench measures operations on tensors, launches, and the compilation of kernels, for the comparison with
// PyTorch that lab/peers makes.
//
// # Rows
//
// rows.json lists the measurements: the operation, its shape, the clock, and the target. lab/peers/torch_kernels.py reads the
// same list. A row has a figure for each path: launched one after the other, and as nodes of a graph; products of matrices by
// cuBLASLt, and by own kernels.
//
// # Figures
//
// A sample is the time of a number of operations that are submitted one after the other, until the device has finished all of
// them, divided by their number: it takes a fifth of Options.RepetitionTime, and has 2 to 400 operations. The figure is the
// median of the samples; their 10th and 90th percentile show the spread. Each sample has two clocks: the host's, and two
// events of the device. A row names the one that counts: the host's where launches are the bound, else the device's.
//
// Operands are random numbers. An operation writes to tensors that are there. It uses the same operands each time, which stay
// in the device's cache where they are small; a row with several sets of operands takes them in turn, so that they do not.
// Results are compared with the host's before anything is measured.
//
// The launch of an empty kernel takes turns with the driver's call, sample by sample, and is the host's time alone. The start
// of a process is the time from the open device to the loaded kernels, in a process of its own where the driver's cache is off.
//
// # Simulated device
//
// There the shapes are small, kernels are interpreted, and results are compared. Its times are of the interpreter, and no
// claim.
package kernelbench
