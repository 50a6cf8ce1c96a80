// Package replay feeds a recorded trace to a device and measures what it costs: time and driver
// calls for each operation, and the memory held against the memory asked for.
//
// # Words
//
// A round is one pass over the trace; rounds follow each other on the same device, so the first is
// cold and the rest are warm. A step is an event of the trace made ready for the loop. Leftovers are
// the buffers that the trace never frees: they are freed after each round, outside the time.
//
// # Measurement
//
// One goroutine plays the events one at a time, in order, to a device that does not know the next ones. The clock is read
// before the first step and after the last one of a round and nowhere between; heap allocations are counted over the same
// stretch. Driver calls are counted from the start of one round to the start of the next, to include calls by background work
// and by the free of leftovers. Times are real; modelled times of a simulated driver's calls are reported separately. Cached
// bytes are read at the end of the timed stretch, before the leftovers are freed.
//
// With Options.Gap a last round does other work between the events and times each event, less the cost of reading the clock.
//
// With Options.Jitter each round plays a trace that differs from the recorded one, and from that of the round before.
// The peak live bytes are then the most of any round. With Options.Rest the loop pauses between rounds.
//
// With Options.Lag the loop also drives the simulated clock, so the time of such a round says nothing about the allocator.
//
// With Options.Hazards a kernel writes each buffer after its allocation and another one reads it before its free,
// on the buffer's stream, under the checker of cudadrv/hazard: memory that two streams get without an order, that
// is unmapped under work or handed out twice shows there.
//
// # Parallel
//
// With Options.Parallel every stream has a goroutine that runs the stream's steps in program order. A free on another stream
// than its allocation waits for the allocation: it spins a few times and then parks. Nothing else orders the goroutines, so
// overlaps differ from run to run, and so do the peaks.
//
// With Options.Wait allocations wait for the frees of other goroutines. If all holders of memory wait, one is refused with
// vram.ErrWouldDeadlock: a failed allocation. With Options.Copies it does not fail while another copy of the trace plays: as a
// program would abort its step, the copy gives up its round. Its players stop, its memory is freed, and it pauses, its streams
// suspended, until another copy has finished the round. Then it plays the round again from the start. The last playing copy
// does not give up, and a finished one does not come back: n copies give up at most n(n-1)/2 times in a round. A copy frees
// its leftovers when all its players have finished, for others to use, and not after the round: the time includes these frees.
//
// # Least limit
//
// Survival is not monotone in the limit: a larger one places blocks differently and may fail where a smaller one did not.
// MinCapacity therefore climbs a ladder of limits from the peak live bytes upwards until one survives, and bisects between
// that one and the rung below it until they are at most a thousandth of the peak apart. Its result survived all rounds; that
// no smaller limit would is likely and not proven. Plain bisection from the top was tried too: where feasibility has gaps it
// stops at the edge of the highest one.
package replay
