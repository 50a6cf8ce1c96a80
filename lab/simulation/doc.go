// Package simulation runs the whole allocator from one seed on one goroutine: the real streams, pool, actors, futures and
// magazines, on the simulated device with its stepped clock and scripted failures. A scheduler draws every decision, so a run
// meets in seconds the interleavings that a program meets in months, and the same seed repeats it.
//
// # Words
//
//   - An action is one decision of the scheduler: a caller begins a call, a task resumes, the device's clock advances,
//     failures begin or end. A history is a list of actions. Every other seed leaves out some kinds of actions and plays
//     others more often.
//   - A task stands for a goroutine: a caller inside a call, an actor's worker, a driver job, a callback. It runs on a
//     coroutine until it has to wait or reaches a place where others may run.
//   - A place is where a task may be held up: at the seams of every turn (taken, a message received, about to leave, the atomic operations of
//     leaving, left with its effects not yet performed), inside turns where tests interfere, before every driver call, and where a
//     request looks at its context.
//   - To settle is to make the driver work, run every task to its end, and check all books.
//
// # How it gets hold of the allocator
//
// A world is an actors.Host. It is passed to pool.NewOn and streams.Config and used by every promise: it starts a task instead
// of a goroutine, parks in the scheduler, and wraps the actors' behaviors so that turns can be interrupted. Nothing else of
// the allocator knows about it; without a Host the allocator runs on the Go scheduler and compares a pointer with nil where a
// goroutine would start or park. Only one task runs at a time: coroutines switch only to each other.
//
// # Decisions
//
// Sizes from nothing to more than the limit, with and without options: single, in batches, waited for, as futures alone and
// gathered, and waits for memory with priorities, in batches and while their callers free. Frees: single, in batches, twice,
// stale. Cancellations and ends of contexts at any moment. Steps that repeat, by themselves and among all else, with requests
// left out, resized, moved and kept. Streams opened, adopted, also while captured, and closed with live buffers and pending
// requests; the device closed at any moment and opened again. Values handed over from one stream's caller to another's;
// streams excluded from waits and taken back; work on buffers of other streams. Captures of streams into graphs, which callers
// put kernels into and launch when the capture ends: most are announced, and begin while others are in any driver call, and
// some begin without the allocator between a query and a record, a few of which end before the query after it. Ticks, trims,
// warm-ups, levels of pressure, other budgets, limits, ages and prices; pauses after large frees. Driver calls that fail once,
// now and then or forever, missing capacity, panics in turns and driver calls, virtual time.
//
// # Checks
//
//   - No two live buffers overlap, and all their memory is mapped and aligned (a dumb list of ranges).
//   - No memory is handed to another stream, or unmapped, before work that was submitted for it has finished (a list of uses with
//     their end in virtual time), and no driver call is made on a handle that was destroyed. Work of a graph ends never before the graph
//     is launched.
//   - Nothing waits for work of a stream that callers have excluded from waits, neither on the host nor on the device, save a Transfer and
//     the Close of that stream.
//   - A buffer that was freed while other streams had recorded uses of it is pending as long as their work runs. When all work has
//     ended, and callers of adopted streams have looked, nothing is.
//   - An address inside a live buffer leads to that buffer, in its own stream only, by a handle with which it can be used, handed over and
//     freed; no other address leads to a buffer that does not lie there.
//   - The allocator makes no call on a stream that is being captured, and no graph contains one, except a record that it gives
//     up, in an unannounced capture. Work on another stream's buffer follows that stream's work, or is refused. A CaptureError
//     names a stream that was captured since the request began, or whose capture was announced; zeroing, a Close and a Transfer
//     fail with one if one of their streams was captured all the time.
//   - Every request gets one answer, with a reason that exists: no failure without a failure, no end without a cancellation. A
//     future that was cancelled in time delivers nothing, and an answer never changes.
//   - If nothing can run while somebody waits, that is a deadlock, except for requests that wait for memory: none of them
//     wants less than the unowned memory, no stream keeps a page without live buffers, and each is served once all memory is
//     freed. No deadlock is declared while a stream that several callers use holds memory, unless one of them has begun to
//     suspend it.
//   - When all that can run has ended, and the work of the device, nobody waits for memory who could be served, and nobody waits once
//     all memory is freed, both without a tick: a wait that only a tick ends is a lost wake-up. Callers of streams with all
//     memory free it, one buffer after the other, while others wait for buffers and batches.
//   - Two streams' only callers, one feeding the other through a Handover, get all values, in order. If one of them can always
//     run, neither is refused memory as a deadlock; otherwise they do not wait for each other forever.
//   - When all has settled: the books of streams, pool and device balance and agree, counts equal the callers', closed streams
//     without live buffers are gone, nothing waits.
//   - Then unowned memory can be allocated: the whole limit, or the driver's memory for the process if another has a part,
//     when nothing is live; with handles of one page, every page without live buffers; from a stream, its own longest free
//     range.
//   - After a pause longer than the age limit, without frees, every reserved handle has a buffer or belongs to a stream's
//     working set.
//   - No panic is recovered that was not planted.
//   - Reserved memory never exceeds the limit; after the close all memory is back, and a free returns the error of a closed
//     device.
//
// Not played: races inside a single call of a magazine, which has a search of its own, and the root package, whose
// Close is repeated here.
//
// # A failure
//
// The decisions of a run are its history, and a history stays valid when actions are removed. On a failure the simulation
// removes actions that the broken promise does not need, lets tasks run through where the promise still breaks, and prints the
// rest with the result of each action.
package simulation
