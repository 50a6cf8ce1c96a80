// Package binding writes Go functions for the kernels of PTX texts: text in, text out.
//
//	texts -- ptx.Parse, ptx.Uses --> kernels with typed parameters -- names --> Go identifiers -- write --> a Go file
//
// A parameter that is a pointer becomes a cuda.Memory, a Buffer or a Range, that is In, Out or InOut, as ptx.Uses has it; a number becomes the Go type of
// its size, and of its sign where the C++ name of the kernel or its source tells it; an array becomes a struct of bytes. A pointer
// that the kernel compares with 0 may be nil: the zero Buffer, or nil.
package binding
