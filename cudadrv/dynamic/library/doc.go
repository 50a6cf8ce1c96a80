// Package library opens shared libraries, as the driver's and others of CUDA's, and calls their functions, without cgo.
//
// Arguments are words: pointers that C keeps for the time of a call, or writes through, are of memory in Go's heap or of C,
// never of a goroutine's stack, which may move during the call. The caller keeps them in one object.
//
// # Concurrency properties
//
// All of it may be called from any goroutine. A library is never closed.
package library
