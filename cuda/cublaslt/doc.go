// Package cublaslt multiplies matrices with NVIDIA's library cuBLASLt. The library is optional: without it Open returns an
// *AbsentError.
//
// # Finding the library
//
// The environment variable VRAM_CUBLASLT names the file, or is "off", which forbids it. Without it libcublasLt.so.13 and then
// .12 are looked for (the latter alone where the driver is of CUDA 12): by the loader, in $CUDA_HOME/lib64 and
// $CUDA_PATH/lib64, /usr/local/cuda/lib64, $CONDA_PREFIX/lib, and in the folders of Python's wheels:
// site-packages/nvidia/{cu13,cublas}/lib of $VIRTUAL_ENV, the user and the system. A library is opened once in a process, which
// takes 50 to 250 ms; each device's handle takes some milliseconds more.
//
// # Plans
//
// Handle.Plan asks the library for its algorithm the first time for each problem and alignment of the addresses, which takes 15
// to 90 µs. It caches the answer, also that there is no algorithm, for the MaxPlans problems used last. Plan.Launch submits the
// product by cuda.Context.LaunchWith: buffers are checked, ordered, announced and captured as for kernels. The workspace
// belongs to the caller, from cuda.Context.Workspace: in a capture, to the graph.
//
// Matrices are row-major, and the library's are not: it multiplies the transposes, with A and B exchanged.
//
// # Concurrency properties
//
// All functions are safe for concurrent use. The calls of a handle come one after the other: a submission takes 6 to 11 µs.
package cublaslt
