// Package gemm describes products of matrices in buffers: D = f(alpha·op(A)·op(B) + beta·C + bias), where D is stored over C.
// It computes nothing: packages cuda/cublaslt and compute/kernel/matmul do.
//
// # Words
//
// A Problem is the shape of a product: sizes, transpositions, leading dimensions, the number of products and the strides
// between them, element types, precision and epilogue. Operands are the ranges of buffers, and the two factors. Matrices are
// row-major: a leading dimension is the distance in elements between the begins of two rows in memory. A is stored M x K, or K
// x M where it is transposed; B is stored K x N, or N x K; C is M x N.
//
// # Sizes
//
// Any size may be 0: a product with K 0 is beta·C + bias. Check returns a typed error for sizes below 0 or above MaxSize,
// leading dimensions that are shorter than a row, strides with which products of a batch write over each other, sums that
// overflow, ranges that are too short, and combinations without a kernel. CheckOperands also refuses operands that share memory
// with an output: the result would depend on the order of the device's blocks. Adjacent columns of one matrix share none.
//
// # Concurrency properties
//
// These are values.
package gemm
