// Package streams implements the caches of CUDA streams, one actor for each stream, and buffers. The
// actors run the decisions of internal/stream/core; callers share slots and magazines with them
// (internal/stream/magazine).
//
// # An allocation
//
//  1. Alloc takes a slot from the magazine of the size: one compare-and-swap. Most requests end
//     here.
//  2. While demand is stable and the last freed block has the size, the caller pops it from the
//     freed list: one compare-and-swap.
//  3. Otherwise the caller enters the stream's turn, if no goroutine is in it, and runs the core
//     itself: it collects freed blocks, finds a range and splits it. No message, no goroutine switch.
//  4. If another goroutine has the turn, or the stream's memory does not suffice, the request
//     becomes a message with a promise. The core asks the pool for pages; the answer comes back as
//     a message, and the turn that receives it completes the promise.
//
// A free puts the slot back into its magazine, or on the freed list, which the next turn takes as a
// whole. It enters no turn, except while requests wait for memory.
//
// # Parts
//
// Callers hold a Stream, the device a Control. Both lead into the turn, which the actor owns:
//
//	Stream, Handover          run code in the turn (wiring.tryTurn, inTurn), or send it a claim
//	turn                      handles messages and calls, and has the parts below
//	ending                    repairs the books after a panic, and ends the stream
//	reclaims                  answers reclaim requests of the pool
//	dispatcher                carries out the decisions of the package claims
//	searches                  searches the core, and queries fences between two searches
//	lentMemory                returns pages to the pool, and takes the fences for them
//	turnState                 has the core, objects in transit, and the effects of the turn
//	wiring                    shared by all: cuda (driver calls), peer (other streams), suspensions
//
// A part has pointers to parts below it in this list, and none to parts above. The pool, the actor and the
// magazines call adapters, whose methods callers cannot call.
//
// # Batches
//
// A batch takes slots from the magazines by one access each, then from the turn, and asks the pool
// for all missing pages in one message. It holds its slots until the pool has answered. A refusal,
// a cancellation, a panic and Close put them back: a caller has all of a batch, or nothing.
//
// # Requests that wait
//
// A request with Wait that the pool refuses waits in the pool for other callers' frees, in the
// order of the package internal/pool/admission: higher priority first, then older. A later request
// is served before earlier ones only with memory that they cannot use, and with no more in all than
// each of them wants itself. A request without Wait is in no order: it takes free memory, or fails.
// The end of the context, Cancel and Close end the wait immediately; a batch holds nothing while it
// waits.
//
//	refused --Refill, Waiting--> waits --Granted, or Offered and served--> answered
//	                               '-----Denied, Withdraw----------------> answered
//
// A request of a tenant with Wait enters that order as soon as others wait, even if its stream
// could serve it. A request that names a Reservation draws from it the pages that its stream does
// not have, and overtakes no request by that.
//
// While any request of the device waits, no magazine of large blocks is kept, magazines of small
// blocks serve in turns only, and every free enters a turn of its stream,
// which tells the pool. So a wait ends with the turn that collects the memory, without a
// timer. On an adopted stream, pages without fence coverage come with its callers' next request.
//
// # Deadlocks
//
// A wait is charged to its stream, or to its tenant. Either has several callers unless it says
// otherwise (Stream.Exclusive, pool.Quota.Exclusive): while one caller waits the others may free,
// so that no deadlock is declared while the stream or tenant holds memory, and only a deadline ends
// such a wait. An exclusive stream waits while its goroutine waits in AllocFor, AllocBatchFor or
// Await for one of its requests; it is suspended while its goroutine waits in a Handover, or has
// called Suspend. A stream holds memory while it has pages: once all free pages were
// returned, only the pages of live buffers and of announced uses.
//
// A stream is runnable if it neither waits nor is suspended. A suspended stream counts as runnable if, for
// each of its suspensions, a stream that may end it is runnable: one of the streams that it names; else any
// stream that holds memory or waits for some. Streams that do neither, and are not named, are not visited. A
// closed stream that is named is runnable: its goroutine may end the wait after Close. A
// future that no goroutine awaits blocks no stream. A deadlock is declared when
//
//   - no stream that holds memory, or was handed some (Handover, Transfer) and is open, is runnable;
//   - every freed block is collected, and every announced use and every fence that keeps
//     memory has passed;
//   - still no waiting request can be served.
//
// Then the youngest blocked request of a stream that holds memory gets a *pool.DeadlockError.
//
// # Uses on other streams
//
// A buffer belongs to the stream that allocated it, and its memory is reused in the order of
// that stream. A use on another stream is announced: RecordStream lasts until the free;
// Use ends with Done; Transfer hands the buffer over. After the free the memory is pending until
// the used streams have finished all work that was submitted to them before the free, or before
// Done. Pending memory serves no request; a turn of its own stream collects it.
//
//	live --Free--> pending --fences passed, seen by a turn--> cached
//
// Blocks share fences: a fence covers all blocks that turns booked as pending before it was begun,
// and no later one (internal/fence/line). A fence is an event record on the used stream. It is
// taken
//
//   - when 128 announced buffers or 16 MiB of them were freed, by the goroutine of that free or of
//     the next request. So a long buffer has its fence immediately where there are few buffers; a short
//     one may also wait for work that is submitted between its free and this point;
//   - when a request finds no memory and 8 MiB are pending, by its goroutine, which also looks how
//     far the fences are and searches again before it asks the pool; after looks that failed, up to
//     31 such requests go to the pool immediately;
//   - at ticks, except on adopted streams; ticks look, too;
//   - when the pool wants memory for others, before the stream answers, except on adopted streams;
//   - in Close of the buffer's stream, for all. Close of the used stream ends all uses on it.
//
// Where many long buffers are freed, both bounds in bytes rise to a 400th of the bytes freed since
// the last tick, 100 ms: so length alone costs at most some 400 fences in a tick, and buffers of
// 128 MiB share fences, too. Memory that waits beyond the fixed bounds is held by the stream and
// serves no request: over all streams of a device at most a sixteenth of its limit. Each tick takes
// half of the unused part of that allowance; a reclaim request of the pool, or a refusal, takes all
// of it until the next tick.
//
// Each look queries the oldest fence of a stream first, and no fence after one that has not
// passed. A request that the pool refuses for lack of memory waits for fences, as long as any
// stream has pending memory, before it fails. No request that free memory serves makes a driver
// call, and the device is never synchronised.
//
// # Reclaim requests
//
// A stream publishes its used bytes, its free pages and the length of its longest free range
// (pool.Client.Usage). The end of each turn stores them, except after an allocation in its
// caller's turn: that marks them as stale, and so does a free that no turn has collected. The pool
// has stale streams publish (Look) before it decides by these figures which stream returns pages.
// Its reclaim request (Asked) is either
//
//   - for a number of pages: the stream returns its longest free ranges, each whole, until they
//     come to so many. It closes no magazine; or
//   - for all free pages: magazines of large blocks are closed, idle spans retired, and
//     if other streams want memory, the fences of pending memory are looked at before the answer.
//
// Every request gets one answer, also from an adopted stream, one that is closing and one whose turn
// panics. The answer counts the Returns and reports before it (Return.Sent), since other goroutines
// may deliver them later. An answer of an idle CUDA stream has no fence.
//
// # Samples
//
// Config.Share is the share of allocations that are sampled: for the profile (package
// internal/stream/sampling), or all for an Observer. Each path to a buffer decides once, after it has the
// buffer, by magazine.Draw; a claim decides before it is sent, on its caller's goroutine, by its number. A
// sampled buffer is reported before its caller gets it, and its free before its memory can be reused. All
// others take the same paths as without samples.
//
// # Idle streams
//
// A stream whose turn and magazines did nothing for ten ticks returns its cache: half of its free
// pages at each further tick, then all, with the blocks of magazines and unused spans.
//
// A stream at work returns its surplus: at the end of each window of ticks as many free pages as were
// free at the end of every turn in it. Magazines that were not used in the window are closed then, so that
// their memory may be surplus in the next one. A loop that is shorter than the window returns nothing that
// it uses.
//
// # How a fence is recorded
//
// Two functions call *fence.Events.Record: cudaStream.record, for the fence of a Return, and
// Timeline.mark of internal/fence, for the fences of announced uses. Both query before and after the
// record whether the stream is being captured.
//
// Pages leave a stream with a fence over all its work so far, unless they answer a reclaim request
// and the stream has no work. On a stream that the device made, the
// goroutine that performs the Return records it (effects.record). An adopted stream is the
// program's, which may destroy it at any time, so that only calls of the program on that stream
// record there: a request that took a turn, any turn while a request waits for the pool, Return and
// Close. All other turns, by ticks and reclaim requests, return only covered pages, for which a
// caller's turn recorded a fence:
//
//	a tick wants one --a caller's turn--> ordered (Seal) --performed--> recorded (Covered)
//
// So there is at most one such fence for each tick. A page is covered if no block on it was
// collected since the record, and it was not granted since. Uncovered pages stay, and out-of-memory reports
// name them.
//
// Every call on a CUDA stream begins with cudaStream.enter, which queries whether the stream is being
// captured into a graph. If it is, a Return keeps its pages; a memset, a wait and Close are refused
// (CaptureError). So a graph never has a node of the allocator, and no call ends a capture. Requests
// and frees that make no call on the stream do not query: they promise the stream's own order, which
// holds within a capture, too.
//
// A query cannot exclude a capture that begins after it. So a capture is announced
// (Submitter.BeginCapture): from then on enter refuses, and the capture begins once the calls that
// have entered have left. One that waits for the stream's work counts among these. A program that
// begins a capture past this module announces nothing: a record queries again, so that no call
// on its event ends the capture or makes another stream part of it. If that capture has ended by
// then, the first query of the event, or wait for it, finds the event in the graph; for the fence of
// a Return the record makes that query, since the pool could not have another fence recorded, and
// repeats itself.
//
//	open --announce--> announced --all calls have left--> capturing --EndCapture--> open
//
// # States of a stream
//
//	serving --Close--> draining --last buffer freed--> gone
//	   \__________________ End (device closed) ________/
//
// A draining stream refuses requests; each freed buffer is returned to the pool. After
// End every free returns ErrClosed.
//
// # Concurrency properties
//
//   - Alloc, Free and all other calls may be made from any goroutine.
//   - A goroutine that is stopped inside Alloc or Free, outside the turn, stops no other. One that
//     is stopped inside the turn delays requests that no magazine can serve, on this stream only.
//   - Every request gets exactly one answer: a buffer, an error, or its cancellation. Memory that
//     arrives for a cancelled request stays in the stream's cache.
//   - A panic in a turn fails the current request; the stream continues if its books balance, else
//     it is quarantined: requests fail with ErrQuarantined, its memory is not touched, and other streams continue.
package streams
