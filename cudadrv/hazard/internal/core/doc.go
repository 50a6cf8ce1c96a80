// Package core finds work on a GPU that touches memory it must not. It has no lock, clock or driver: its methods record calls
// in their order, from one goroutine at a time.
//
// # Words
//
// An access is the reading or writing of a range of addresses by work on a stream; a use is a call, its stream, and its place
// in the program. A buffer is one allocation from its Allocated to its Freed. A host is a side that makes calls: the program,
// or the allocator. A point is a place in the order of everything: the set of all that precedes it.
//
// The package comment of cudadrv/hazard lists the calls that order work, and the kinds of hazards.
//
// # State
//
// Mapped memory is cut into cells: ranges that one allocation had last, and that the same work touched last. A
// cell keeps its last write and the reads since of which none comes before another.
//
// A destroyed stream is forgotten once its work is known to be over: another stream then reuses its place in the clocks, and
// continues its count. Equal cells merge; there is at most one for each change of allocation, last write or reads in mapped
// memory. The last unmappings and the first reports are kept, a bounded number.
package core
