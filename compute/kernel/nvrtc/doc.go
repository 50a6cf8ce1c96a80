// Package nvrtc compiles CUDA C++ with NVIDIA's run-time compiler, where a machine has it: a toolkit, a wheel of Python or an environment
// of conda brings it, the driver alone does not. It is opened without cgo, at run time.
//
// Find looks for it; a machine without it is a *NotFoundError. Compile makes code for a kind of device, or PTX where the
// compiler does not know the kind. Source that is wrong is a *CompileError, which prints the compiler's words and the numbered lines.
//
// All functions are safe for concurrent use; one compilation runs at a time.
package nvrtc
