// Package core decides what work on a GPU has touched memory that it must not. It performs nothing, has no lock,
// clock or driver: it is told in what order calls were made, and one goroutine at a time uses it.
//
// # Words
//
// An access is the reading or writing of a range of addresses by work on a stream; a use is what was done, on
// which stream, and the place in the program that asked for it. A buffer is one allocation from its Allocated to its
// Freed. A host is a side from which calls come: the program, or the allocator. A point is a place in the order of
// everything: what has happened before it.
//
// What orders work, and the kinds of hazards, are in the package comment of cudadrv/hazard.
//
// # What is kept
//
// Mapped memory is cut into cells: ranges that one allocation had last, and that the same work touched last. A
// cell keeps its last write and the reads since of which none comes before another.
//
// A stream that was destroyed is forgotten once its work is known to be over: its place in the clocks then serves
// another, and counts on. Cells merge when nothing tells them apart any more; there is at most one for each change of
// allocation, last write or reads in mapped memory. The last unmappings and the first reports are kept, a bounded number.
package core
