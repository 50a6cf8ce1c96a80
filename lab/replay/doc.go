// Package replay feeds a recorded trace to a device and measures what it costs: time and driver
// calls for each operation, and the memory held against the memory asked for.
//
// # Words
//
// A round is one pass over the trace; rounds follow each other on the same device, so the first is
// cold and the rest are warm. A step is an event of the trace made ready for the loop. Leftovers are
// the buffers that the trace never frees: they are freed after each round, outside the time.
//
// # What is measured
//
// The events go one at a time, in order, from one goroutine, to a device that knows nothing of what
// comes next. The clock is read before the first step and after the last one of a round and nowhere
// between; heap allocations are counted over the same stretch. Driver calls are counted from the
// start of one round to the start of the next, so that what freeing the leftovers or background work
// caused is not lost. Times are real; what a simulated driver's calls would have taken stands apart.
// Cached bytes are read at the end of the timed stretch, before the leftovers are freed.
//
// With Options.Gap a round is added at the end in which other work lies between the events and each
// event is timed by itself, with what reading the clock costs taken off.
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
// With Options.Parallel every stream has a goroutine that runs the stream's steps in program order.
// A free that is on another stream than its allocation waits for it: it looks a few times and then
// parks. Nothing else ties the goroutines together, so what overlaps differs from run to run, and so
// do the peaks.
//
// With Options.Wait allocations wait for the frees of other goroutines. Where all that holds memory waits, one is refused with
// vram.ErrWouldDeadlock: a failed allocation. With Options.Copies besides it is none as long as another copy of the trace plays: as a
// program would abort its step, the copy gives up its round. Its players stop, what it holds is freed, and
// it stands aside, its streams suspended, until another copy has come to the end of the round. Then it plays the round again
// from the start. The last copy that plays does not give up, and one that has come to the end does not come back: n copies
// give up at most n(n-1)/2 times in a round. A copy frees its leftovers when all its players have come to the end, for others to
// have, and not after the round: inside the time.
//
// # Least limit
//
// Whether a trace survives a limit is not monotone in the limit: a larger one places blocks
// differently and may fail where a smaller one did not. MinCapacity therefore climbs a ladder of
// limits from the peak live bytes upwards until one survives, and bisects between that one and the
// rung below it until they are at most a thousandth of the peak apart. What it answers survived all rounds; that no smaller
// limit would is likely and not proven. Plain bisection from the top was tried too: where feasibility
// has gaps it stops at the edge of the highest one.
package replay
