// Package nvrtc compiles CUDA C++ with NVIDIA's run-time compiler. The compiler is optional: a toolkit, a wheel of Python or an
// environment of conda brings it, the driver alone does not. It is opened without cgo, at run time.
//
//	compiler, err := nvrtc.Find() // a *nvrtc.NotFoundError where there is none
//	m, err := compiler.Load(c, "scale.cu", source)
//	scale, err := m.Function("scale") // extern "C" __global__ void scale(...)
//
// # Finding the library
//
// The environment variable VRAM_NVRTC names the file, or is "off", which forbids it. Without it the library is looked for by the
// loader, then in the folders that package cublaslt names.
//
// # Compiling
//
// Library.Load makes code for a context's device, Compile code for any kind of device, or PTX where the compiler does not know
// the kind, and PTX text. Source that is wrong is a *CompileError, which prints the compiler's words and the numbered lines. For
// code that is kept on disk see kernel.Compiler.RawCUDA; the command vram kernels writes typed Go functions for kernels.
//
// # Concurrency properties
//
// All functions are safe for concurrent use. One compilation of a library runs at a time.
package nvrtc
