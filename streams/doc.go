// Package streams is the caches of CUDA streams: one actor for each stream, around the decisions of
// streams/core and the shared words of streams/magazine, and the buffers that callers hold.
//
// # The way of an allocation
//
//  1. Alloc takes a slot from the magazine of the size: one compare-and-swap. Most requests end here.
//  2. Else, if the block that was freed last has the size, the caller takes it back from the list of freed ones: one
//     compare-and-swap. It does so while demand is stable.
//  3. Else the caller enters the stream's turn, if nobody has it, and runs the core itself: blocks that
//     were freed come home, a range is found and split. No message, no goroutine switch.
//  4. If somebody has the turn, or the stream's own memory does not suffice, the request becomes a
//     message with a promise. The core asks the pool for pages; the answer comes back as a message, and
//     the turn that receives it completes the promise.
//
// A free never enters a turn: it puts the slot back into its magazine, or on the list that the next turn
// takes whole.
//
// # Parts
//
// Stream is what callers hold, and Control what the device has of it. Both lead into the turn, which the actor owns:
//
//	Stream, Lane, Handover    callers'; they run code in the turn (wiring.tryTurn, inTurn) or send it a claim
//	turn                      what the messages do, lanes' errands, panics and the end
//	desk                      claims; it carries out what the package claims decides
//	searches                  searches of the core, and looks at fences between them
//	loans                     what goes back to the pool, and the fences for that
//	books                     the core, what a turn has at hand, and the effects that it leaves
//	wiring                    what all of them use: handle (driver calls), peer (other streams), suspensions
//
// A type of the lower six sees what is below it. The pool, the actor and the magazines see adapters, whose methods callers cannot call.
//
// # Batches
//
// A batch takes from the magazines by one access each, then from the turn, and asks the pool for all that is
// missing in one message. What it has got it holds until the pool has answered; a refusal, a cancellation, a
// panic or Close gives it back, so that a caller has all of a batch or nothing.
//
// # Requests that wait
//
// A request with Wait that the pool refuses goes on waiting there, for other people's frees, in the order of the package
// pool/core/admission: the higher priority first, then the older. Who waits behind others is served before them only with
// what they cannot use, and with no more in all than each of them wants itself. A request that does not wait is in no order:
// it takes what is free, or fails. The end of the context, Cancel and Close end the wait at once; a batch holds nothing
// while it waits.
//
//	refused --Refill, Waiting--> waits --Granted, or Offered and served--> answered
//	                               '-----Denied, Withdraw----------------> answered
//
// A request of a tenant that may wait takes its place in that order as soon as others wait, whatever its stream keeps. One that names a
// Reservation draws from it what its stream does not keep, and passes nobody by that.
//
// While any request of the device waits, memory is wanted: no magazine of large blocks is kept, those of small ones serve in
// turns only, lanes lease nothing, and every free enters a turn of its stream, which tells the pool. So a wait ends with the turn
// in which the memory comes home, and nobody looks at a clock. What no fence of an adopted stream's callers covers comes
// with their next request.
//
// A wait that its context ends says for how long it lasted and who holds memory: *pool.WaitError.
//
// # Deadlocks
//
// A wait is charged to its stream, or to its tenant. Either has several callers unless it says otherwise (Stream.Exclusive,
// pool.Quota.Exclusive): while one of them waits others may free, so that no deadlock is declared while it holds memory, and only
// a deadline ends such a wait. An exclusive stream waits while its goroutine waits in AllocFor, AllocBatchFor or Await for one of its
// requests; it is suspended while that waits in a Handover, or has called Suspend. A stream holds memory while it has pages, which
// are those of live buffers, of announced uses and of lanes once all that is free was given up.
//
// A stream goes on that neither waits nor is suspended, and will go on if for each of its suspensions one of the streams goes on, or
// will, that may end it: those that it names; else any that holds memory or waits for some. Streams that do neither, and are not
// named, are not looked at, however many there are. When no stream goes on, or will, that holds memory or was handed some (a Handover,
// Transfer), all that was freed before has come home, every announced use and every fence that keeps memory has passed and still
// nothing serves anybody, nobody is left to free: then the youngest blocked request of a stream that holds memory gets a
// *pool.DeadlockError. A future that nobody awaits blocks nobody.
//
// # Uses on other streams
//
// A buffer belongs to the stream that it was allocated on, and its memory is used again in the order of that stream. A use
// on another stream is announced: RecordStream lasts until the free; Use ends with Done; Transfer hands the buffer over.
// Announced memory that is freed is pending until the work has finished that was submitted to those streams before the
// free, or before Done. Pending memory is nobody's; it comes home in a turn of its own stream.
//
//	live --Free--> pending --fences passed, seen by a turn--> cached
//
// Fences are batched: one covers all blocks that turns booked as pending before it was begun, never one that came later
// (internal/fence/line). They are taken, by event records on the used stream, where that pays:
//
//   - when 128 announced buffers were freed or 16 MiB of them, by the goroutine of that free or by the next request's: so a
//     long buffer has its fence at once where there are few, and what is submitted after the free of a short one may be
//     waited for, too, until this point;
//   - when a request finds no memory and 8 MiB are pending, by its goroutine, which also looks how far the fences are, and is
//     served again before the pool is asked; after looks that failed up to 31 such requests go to the pool at once;
//   - at ticks, except on streams that were adopted; ticks look, too;
//   - when the pool wants memory for others, before that is answered, likewise;
//   - in Close of the buffer's stream, for all. Close of the stream with the announced use ends all uses on it.
//
// Where many long buffers are freed both bounds in bytes rise to a 400th of what was freed since the last tick, 100 ms: so
// length alone costs at most some 400 fences in a tick, and buffers of 128 MiB share one, too. What waits beyond the bounds
// above is memory that the stream holds and nobody has: over all streams of a device at most a sixteenth of its limit. Each
// tick takes half of what is not used any more, and a wish of the pool's for others, or a refusal, takes all until the
// next tick.
//
// Each look asks for the oldest fence of a stream first and for no other behind one that has not passed. A request that the
// pool refuses for want of memory waits for fences, as long as any stream has pending memory, before it fails.
// No request that free memory serves makes a driver call, and the device is never synchronised.
//
// # Lanes
//
// A goroutine that alone uses a stream, or a part of its memory, may open a Lane: blocks are leased to it
// whole, and its pairs cost no atomic operation that writes. Others free its buffers as any; those come home
// when the lane has nothing else left, or is told so by a tick. What is asked of the stream under pressure
// is asked of its lanes, too: they answer at their next calls, and until then reports name them.
//
//	open --Close, or the stream's Close--> over
//
// The calls of a lane that is over go the stream's way. What it has comes home in the turn of Close, or of
// the first call after the stream's Close: until then the stream is not gone.
//
// # Idle streams
//
// A stream in whose turn and magazines nothing happened for ten ticks gives its cache back: half of its free pages at
// each further tick, then all, with what magazines hold and spans that nobody uses. Lanes are told to give back what they
// do not use, which they do at their next calls.
//
// # Who records a fence
//
// Two ways lead to fence.Events.Record: handle.mark, for the fence of a Return, and Timeline.take of internal/fence, for the fences of
// announced uses. Either asks before and after whether the stream is being captured.
//
// Pages leave a stream with a fence over all its work so far. On a stream of the device's own the goroutine
// that performs the Return records it. An adopted handle is the program's, which may destroy it without a word, so that there only callers
// do: a request that took a turn, any turn while a request waits for the pool, Trim and Close. All other turns, those
// of ticks and of other streams' need, return only pages that are covered by a fence which a caller's turn recorded:
//
//	tick wants one --a caller's turn--> ordered (Seal) --performed--> recorded (Covered)
//
// so that there is one for each tick at most, and a page counts as covered if nothing came home to it since, and it was not
// granted since. What no fence covers stays, and out-of-memory reports name it.
//
// Every call on a handle asks first whether the stream is being captured into a graph. If it is, a Return keeps its pages,
// a memset and a wait are refused (CaptureError), and Close is: then a graph never has a node of the allocator's, and no
// capture is ended. Requests and frees that make no call on the stream ask nothing: what they promise is the stream's own
// order, within the capture as outside.
//
// # States of a stream
//
//	serving --Close--> draining --last buffer freed--> gone
//	   \__________________ End (device closed) ________/
//
// A draining stream refuses requests; each buffer that comes home is returned to the pool. After End
// every free says ErrClosed.
//
// # Concurrency properties
//
//   - Alloc, Free and everything else may be called from any goroutine; a lane by one at a time.
//   - A goroutine that is stopped inside Alloc or Free, outside the turn, stops nobody. One that is stopped
//     inside the turn delays requests that no magazine can serve, on this stream only.
//   - Every request gets exactly one answer: a buffer, an error, or its cancellation. Memory that arrives
//     for a request that was cancelled stays in the stream's cache.
//   - A panic in a turn fails the request at hand; the stream goes on if its books balance, else it is
//     quarantined: requests fail with ErrQuarantined, its memory is not touched, other streams go on.
package streams
