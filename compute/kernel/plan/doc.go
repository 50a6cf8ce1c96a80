// Package plan turns expressions into the text of kernels. It is pure: a Program and a Variant make one text of PTX, always the
// same.
//
//  1. New takes the output expressions, merges equal ones, and orders the reductions: depth 1 needs the elements alone,
//     depth 2 the results of the first, and so on.
//  2. Program.Fit takes the layouts of the tensors, broadcasts the inputs, merges dimensions, and chooses a Variant: all that the text
//     depends on. Sizes and strides are not part of it: they are the parameters of the kernel.
//  3. Program.Emit writes the text of a variant. Params are its parameters in order, for those who launch it.
//
// Fit takes the schedule of a rule. Schedules lists the others that are worth measuring, and Geometry.Apply takes one of them.
//
// # Schedules
//
// An element-wise kernel has a thread for each vector of up to eight neighbours in the last dimension. Inputs that are
// contiguous in another dimension than the outputs, as a transposed matrix, are read by tiles of shared memory, a block for
// each. A kernel with reductions has a number of threads for each row: 1, 8, or 32 of a warp, or a block of 128, 256 or 1024.
// It goes over the row once for each depth, and once more for outputs that have an element for each element. A row of which
// each thread has at most 32 elements is loaded once: the thread keeps them in registers, and values that are computed of them,
// so that softmax computes each exponential once. A few long rows are split: each block reduces a part, and leaves its partial
// result in scratch memory. Where nothing but row values is wanted at depth 1, the last block to finish reduces the partial
// results, in their order; else the next pass is another launch, each block of which does so. No sum depends on which block was
// faster.
//
// Rows whose elements are far apart while neighbouring rows are near, as the columns of a matrix, are turned: the threads of a
// warp have neighbouring rows, and load vectors of them where the operands allow it. A block has the rows of a warp, its warps
// share the elements, and several blocks share a group of rows as they share a split row.
package plan
