// Package matmul multiplies matrices in buffers: by cuBLASLt where that library is there and allowed, and by kernels of its own
// everywhere else. Package cuda/gemm describes a product, its precision and its operands.
//
// # Use
//
//	p := matmul.Problem{M: 512, N: 512, K: 1024, Precision: gemm.TF32}
//	products := matmul.New(c)
//	way, err := products.Multiply(c, p, matmul.Operands{A: cuda.Whole(a), B: cuda.Whole(b), C: cuda.Whole(d), Alpha: 1}, matmul.Any)
//
// It does not wait for the device. way names the method of the product. One Multiplier serves all contexts of a device, so that
// each kernel is compiled once.
//
// # Precision
//
// The error of a product is relative to the product of the norms of A and B; K is the length of the sums.
//
//	IEEE          each product and sum is rounded to fp32 (fp64 for Float64); 1e-5 for K up to 2^14
//	3xTF32        the same bound: the rest of each number is multiplied, too, and sums are rounded as in fp32
//	TF32          1e-3: operands have 10 bits of fraction
//	rounded bf16  1e-2: operands have 7 bits of fraction
//	rounded f16   1e-3: operands have 10 bits of fraction and end at 65504
//
// A product with one row or one column of fp32 is computed as IEEE, with any precision. Results of 16 bits are rounded once
// more. Own kernels add in an order that the shape alone decides: the same call has the same bits.
//
// # Ways
//
// Own kernels are CUDA C++ in source/, compiled to PTX; the program has a compressed copy. The driver compiles a kernel for its
// GPU at its first use, and that product waits for it, some 10 to 60 ms. The first product also opens the library, up to a
// quarter of a second. Prepare does both ahead of need. A multiplier made WithCompiler, as in package ops, takes kernels from a
// kernel.Compiler: its store keeps their code beyond the process, its WarmUp prepares the list of Needs, and with
// kernel.Prepared nothing else is compiled. Without it a multiplier has no store. Products by matrix units (TF32,
// 3xTF32, 16 bits) need compute capability 8.0; for fp32 there are kernels with asynchronous copies from 8.0 on, and others
// for older devices.
//
// # Concurrency properties
//
// All functions are safe for concurrent use. A product whose kernel is loaded takes no lock on its way to own kernels; the
// library is called by one goroutine at a time for each Multiplier.
package matmul
