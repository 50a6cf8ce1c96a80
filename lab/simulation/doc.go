// Package simulation plays the whole allocator from one seed on one goroutine: streams, pool, actors, futures and magazines as
// they are, on the simulated device with its stepped clock, with scripted failures of its calls. A scheduler draws what
// happens next, so that a run meets in seconds what a program meets in months, and meets it again from the same seed.
//
// # Words
//
//   - An action is one decision of the scheduler: a caller begins something, a task goes on, the device's clock moves, failures
//     begin or end. A history is a list of actions.
//     Every other seed has some kinds of actions never, and others more often.
//   - A task is what a goroutine would be: a caller inside a call, an actor's worker, a driver job, a callback. It runs on a
//     coroutine until it has to wait or gets to a place where others may run.
//   - A place is where a task may be held up: at the seams of every turn (taken, a message received, about to leave, left with
//     its effects not yet performed), inside turns where tests interfere, before every driver call, and where a
//     request looks at its context.
//   - To settle is to make the driver work, let everything under way end, and look at all books.
//
// # How it gets hold of the allocator
//
// A world is an actors.Host. It is given to pool.NewOn and to streams.Config, and reaches every promise: what would start a
// goroutine makes a task, what would park waits for the scheduler, and the behaviors of the actors are
// wrapped so that turns can be interrupted. Nothing else of the allocator knows of it, and without a Host it runs on the
// Go scheduler with no more than a look at a nil where a goroutine would start or park. A task runs alone: coroutines hand over to each
// other and to nobody else.
//
// # What is decided
//
// Sizes from nothing to more than the limit, with and without options, one by one, in batches, waited
// for or as futures alone and gathered, and waits for memory with priorities, in batches and while their callers free; frees one by one, in batches, twice, stale; cancellations and ends of contexts at any
// moment; steps that come again and again, by themselves and among all else, with requests left
// out, resized, moved and kept; streams opened, adopted and closed with live buffers and pending requests; the device closed at any moment and
// opened again; values handed over from one stream's caller to another's; streams excluded from waits and taken back; captures of
// streams into graphs, which callers put kernels into and launch when the capture ends: most are announced, and begin at any driver call at
// which others stand, and some begin past the allocator between a query and a record; works on buffers of other streams; and streams that are
// adopted while they are captured; ticks, trims, warm-ups, levels of pressure, other budgets, limits, ages and prices; pauses after much was freed; driver calls that fail once,
// now and then or for ever, capacity that
// is not there; panics in turns and driver calls; virtual time.
//
// # What is checked
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
//   - No call of the allocator's is made on a stream that is being captured, and no graph has a part of it, but for a record that is given
//     up, of a capture that nobody announced. Work on another stream's buffer is behind that stream, or it is refused. A CaptureError
//     names a stream that was captured since the request began, or whose capture was announced; zeroing, a Close and a Transfer fail with one if a stream of theirs was captured all
//     the time.
//   - Every request is answered once, with a reason that there was: no failure without a failure, no end without a
//     cancellation. A future that was cancelled in time delivers nothing, and an answer never changes.
//   - A moment at which nothing can go on while somebody waits is a deadlock, but for requests that wait for memory: of those
//     none wants less than what is nobody's, no stream keeps a page that no live buffer lies on, and when all has been freed each
//     was served. No deadlock is declared while a stream that several callers use holds memory, unless one of them has begun to suspend it.
//   - Two streams' only callers who work one behind the other through a Handover get all values, in order. Neither is refused memory as a
//     deadlock where one of the two can always go on, and elsewhere they do not wait for each other for ever.
//   - When all has settled: the books of streams, pool and device balance and agree, counts are those of the callers, closed
//     streams without live buffers are gone, nothing waits.
//   - Then memory that is nobody's can be had: the whole limit, or what the driver has for the process where another has
//     a part, where nothing lives; where handles have one page, every page that no
//     live buffer lies on; what a stream's own longest free range holds.
//   - After a pause longer than the age limit, in which nobody frees, no handle is reserved on which no
//     buffer lies, but for those that a stream works with.
//   - No panic is recovered that was not planted.
//   - Reserved memory never exceeds the limit; after the close all memory is back, and a free says that all is closed.
//
// Not played: races inside a single call of a magazine, which has a search of its own, and the root package, whose
// Close is repeated here.
//
// # A failure
//
// The decisions of a run are its history, and a history from which actions were taken out still means something. A failure takes
// out what is not needed for the same promise to break, lets tasks run through where that breaks it as well, and prints what is left with
// what came of each action.
package simulation
