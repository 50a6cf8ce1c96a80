// Package attention computes softmax(scale · Q · Kᵀ) · V and its gradients on ranges of buffers, by kernels of its own: with the
// driver alone.
//
// # Use
//
//	p := attention.Problem{Batch: 8, Heads: 12, KeyHeads: 12, Queries: 1024, Keys: 1024, Dim: 64, Type: gemm.BFloat16, Causal: true}
//	a := attention.New(c, compiler)
//	err := a.Forward(c, p, attention.Operands{Q: q, K: k, V: v, O: o, LSE: lse})
//	err = a.Backward(c, p, operands, attention.Gradients{O: dO, Q: dQ, K: dK, V: dV})
//
// Neither waits for the device. Package compute/ops has the same on tensors.
//
// # Words
//
// A head has rows of Dim elements: queries, keys and values. A group of heads shares the keys and values of one key head (GQA).
// The score of a query and a key is their product times the scale. With the causal mask query i sees the keys up to
// i + Keys - Queries: the last query sees all. The log-sum-exp of a row is the natural logarithm of the sum of the exponentials
// of its scores. A page is a part of a cache of keys and values; the block table lists the pages of each sequence. Where there
// are few queries, as in decoding, blocks divide the keys into parts, and a second launch adds the parts up.
//
// # Shapes
//
// A Matrix has an address and the strides of batch, head and row, in elements; the elements of a row are contiguous. So
// [batch, head, row, element] and [batch, row, head, element] are the same to a kernel. Strides are multiples of 8, and
// addresses of 16 bytes. Problem.Dim is 64 or 128, types are float16 and bfloat16, and Queries and Keys any number.
//
// With offsets (Operands.QueryOffsets, KeyOffsets) the rows of all sequences follow each other: sequence i has the rows from
// offset i to offset i+1. With lengths (Operands.KeyLengths) sequence i has only so many of its keys. With a table
// (Operands.Table) key j of sequence i is row j % PageRows of page Table[i, j / PageRows].
//
// # Kernels
//
// On compute capability 9.0 warpgroups compute both passes: the copy engine brings tiles, and the matrix units work on one tile while
// softmax is computed of another. They take operands without offsets, lengths and tables, of strides above 0, and more than 64
// rows of heads that share keys. Everything else, and every other device, has kernels for compute capability 8.0 and later. The
// results of the two kinds have the same bounds of errors, and different bits.
//
// # Precision
//
// Products are exact and summed in float32 by the matrix units; softmax is float32. Probabilities, and in the backward pass
// their gradients, are rounded to the type of the operands before they are multiplied. Results are rounded once more. The error
// of O is at most 2^-7 (bfloat16) or 2^-10 (float16) times the greatest value, of a gradient 2^-6 or 2^-9 times its greatest
// element; the error of a log-sum-exp is at most 1e-5 times the greater of 1 and its absolute value.
//
// A row without keys has the output 0 and the log-sum-exp -Inf, and so has a row whose scores are all -Inf. NaN and +Inf in a
// row of Q give NaN in its output, NaN in a key that a row sees gives NaN in that row. A value of NaN or Inf that the mask hides
// from a row may give NaN there, as in PyTorch.
//
// # Determinism
//
// Shape and device alone decide the order of sums: the same call has the same bits. There are no atomic operations.
//
// # Sources
//
// T. Dao and others, FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness (2022), arXiv:2205.14135; T.
// Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning (2023), arXiv:2307.08691; J. Shah and
// others, FlashAttention-3: Fast and Accurate Attention with Asynchrony and Low-precision (2024), arXiv:2407.08608. The kernels in
// source/ were written from these papers: CUDA C++, compiled by make kernels.
//
// # States
//
// An Attention has no state but the kernels that it loaded: each on the first call that needs it, from the store of its
// kernel.Compiler or by compiling. Prepare does so ahead of need.
//
// # Concurrency properties
//
// All functions are safe for concurrent use. A call whose kernels are loaded takes no lock.
package attention
