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
// # The order
//
// Each stream counts the work submitted to it. A point is a count for each stream (a vector clock), and an access
// comes before a point if the point's count for its stream has reached it.
//
//	call                                         what it orders
//	work on a stream                             behind that stream's earlier work, and all that the program knew to be over
//	record of an event                           the event stands for the stream's point
//	wait of a stream for an event                the stream's later work behind the event's point
//	query that said "over", synchronisation      all that this host submits later behind the point that was asked about
//	work on a blocking stream                    behind the default stream's earlier work
//	work on the default stream                   behind all blocking streams' earlier work
//
// That time has passed orders nothing: a program that got the right answer by luck is reported. All goroutines are
// one host, as if each knew what the others know. So nothing that is in order is reported, and what is
// only out of order between goroutines is the race detector's to find. What only the allocator knows to be over does
// not order the program's work: it orders what the allocator hands out and unmaps.
//
// # Memory
//
// Mapped memory is cut into cells: ranges that one allocation had last, and that the same work touched last. A
// cell keeps its last write and the reads since of which none comes before another.
//
//	kind             what is reported
//	Unmapped         an access of, or an allocation in, memory that is not mapped
//	UseAfterFree     an access of memory whose buffer was freed
//	NeverAllocated   an access of the allocator's memory that no buffer had yet
//	Race             two accesses of which one writes, without an order
//	EarlyReuse       memory allocated anew on a stream that is not behind the accesses under the former allocation
//	EarlyUnmap       memory unmapped that a buffer has, or before it was known that its accesses are over
//	Overlap          memory allocated that another buffer has
//
// Memory that the program maps by itself is watched for Unmapped, Race and EarlyUnmap.
//
// # What is kept
//
// A stream that was destroyed is forgotten once its work is known to be over: its place in the clocks then serves
// another, and counts on. Cells merge when nothing tells them apart any more; there is at most one for each change of
// allocation, last write or reads in mapped memory. The last unmappings and the first reports are kept, a bounded number.
package core
