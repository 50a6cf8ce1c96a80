// Package bench measures allocation and free in the scenarios that decide whether an allocator is
// fast: the same size again and again, sizes that never come back, many goroutines, many holes.
//
// # Figures
//
// An operation is a pair: one allocation and one free. ns_per_op is wall time over all pairs of all goroutines, the median of
// several repetitions. The implementations of a scenario take turns, repetition by repetition, and each turn begins with the
// calibration, so that a machine that slows down slows all of them down. Heap allocations are counted over the same stretches.
// Latencies come from a pass of their own that reads the clock around every pair, less the measured cost of reading the clock.
// Where the free does not follow its allocation at once, the times of the two calls are added. In a batch (batch) an operation
// is one buffer, and a latency is the time of the allocation alone, divided by the buffers of the batch. In paced a latency is
// the time of one request, an allocation or a free, and no figure includes the work between requests.
//
// # The yardsticks
//
// The scenario calibration is the machine's time for one uncontended compare-and-swap and one atomic OR on a private word: the
// least cost of any lock-free pair. The implementation mutex is a plain map of free lists under one mutex: the work of ten
// minutes.
//
// # Concurrency
//
// Goroutines start together and the caller is one of them. A waiting goroutine spins and yields, so that a mutex or block
// profile of a run shows the allocators and nothing of the harness.
package bench
