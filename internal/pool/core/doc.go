// Package core decides for the pool of one device which request gets memory. It performs nothing: a message goes in, the books
// change, Effects come out. It has no goroutine, clock, context or driver, so that a test can reach every state. Package
// internal/pool/memory has the books of pages and handles, and plans the driver jobs that change them. Package
// internal/pool/admission orders the requests that wait.
//
// # Words
//
// A client is a stream or a reservation. Every page of the arena is a hole, free, lent to one client, or busy with the driver
// job in flight. Each free run carries a tag: the client that returned it and that client's fence. It is clean once the fence
// has passed. Its own client may get it at once, others when it is clean or when their stream is made to wait for the fence
// (Await, below); only clean pages are unmapped. Pending memory is free memory that is not clean.
//
// # The parts
//
//	Core         enters a message into the books
//	scheduler    decides which request is served next
//	ladder       finds memory for a Refill that free memory does not serve: one table of rungs
//	asks         the rungs that ask clients for memory, and the requests to clients
//	grower       the rungs that grow, borrow, buy and recycle
//	warmer       maps memory ahead of need: Warm
//	shrinker     releases memory: Trim, the cache bounds, a limit that was lowered, age
//	noProgress   refuses a request when no client that holds memory makes progress
//	answers      lends memory to requests, refuses and ends them
//	jobs         starts driver jobs
//	clients, queue, waiters, fences, budget    the state of those
//
// # How a Refill is served
//
// Each Refill that the best fitting free run does not serve climbs the ladder. The table in ladder.go lists its rungs in order,
// each with its precondition, its action and the rungs that may follow; the actions are documented with their functions. A
// denial carries the facts: package pool makes the error of them.
//
// Refills precede other requests. A warm-up frees its runs when a Refill waits, and searches again. A Refill of one run that
// free memory can serve does not wait for another request.
//
// A Refill of several runs gets them one by one, each by the ladder, and only while it is the first: two that had parts could
// keep each other from the rest. When it is denied its client keeps the runs that it has, as cache.
//
// An answer to an Ask counts once all earlier returns of the client, and its reports of freed memory, have arrived. A client
// may return less than it has published, or nothing: its callers have used the memory since.
//
// # Clients that miss in turns
//
// While clients miss in turns, a run that a client returned is lent to the next as a whole: the rest of it would be asked for
// again. Pages that a client returned for its own request, and that served no other, are lent to it again at once. The pool
// keeps the pages of other clients, and lends them again once eight further requests that needed memory of others were the same
// client's (contention). An adopted client gets only those again that it returned for its own request: it may be unable to return
// them once more before its callers use it.
//
// # The soft budget
//
// The soft budget is the live peak, the most that clients used or wanted at one moment, and a part more (Policy.Slack;
// SharedSlack where several clients hold memory, which widens up to MostSharedSlack), and the bytes that recycling and
// purchases have added. The peak covers two windows of time, of Settings.AgeTicks each: the current one and the one before.
//
// Whether the pool grows or moves memory once more is a ski rental problem: rent each day, or buy once. Each move books its
// cost, as measured: an ask, each run that comes back for it, each handle that is recycled. A page beyond the soft budget has a
// price (Policy.PageWorth). As soon as moves have cost the price of the missing pages, the pool buys these: it takes their
// price off the cost and raises the budget by as much. So growth costs no more than moves did, and moves no more than growth,
// except for the last price. With a PageWorth of 0 it buys nothing. Pages cost 4 times as much once reserved memory exceeds the
// sum of the clients' own peaks by an eighth: no client would miss there if memory lay where it is wanted.
//
// Before single pages, the pool buys slack in steps of a thirty-second of the live peak, up to its maximum. Within the slack a
// client that misses grows by a step, and is spared the next misses; one that gets only the pages that it asked for misses
// again soon. If no other client has anything left to return, and several hold memory, growth beyond the budget is forced: no
// move could have served, so that it costs nothing, and widens the slack as well. When the live peak rises it absorbs bought
// bytes, and refunds their price. At the end of a window of time half of the cost and of the extra slack expires, and so do
// purchases that are not reserved any more.
//
// # Age
//
// A page that has been free and clean for Settings.AgeTicks ticks is old. At each tick handles with only old pages go back to
// the driver, at most 256 of them. Memory that a Warm has mapped does not get old before it was used. Plain segments stay.
//
// # Long handles
//
// The live peak is stable once a few requests in a row did not raise it. Where much was recycled while it rose, requests are
// long compared to live memory, and new handles are longer (LongPages): the cost of a move is per handle.
//
// # Reservations
//
// A reservation gets one run by a Refill, gets no reclaim request, and keeps the run until Unreserve. A Refill that names the
// reservation (From) and fits there is served from it before anything else: the pages change hands without having been free, so
// that no other request comes between. A reservation never waits, so that no deadlock is declared while it holds anything.
//
// # Sleep
//
// A client that has joined Apart gets windows of holes, which are filled with new handles or with whole handles that are moved
// there: its handles hold no page of others. It does not climb the ladder (apartWay): the limit bounds it, and not the soft
// budget. Sleep releases the physical memory of such a client in one job, and its pages stay lent; Wake makes new memory for
// them at the same addresses, and releases free memory of others for it where the limit or the driver would refuse. A job that
// fails leaves each handle at the point that it had reached, from which both can start again; a Wake that fails puts all of the
// client's handles back to sleep. Pages that are returned asleep become holes, during a job once it has ended.
//
// # Requests that are held
//
// A fence may pass after a day: it may cover a long kernel, or a collective that waits for another GPU. So no request waits for
// a fence while other memory is left, and growth up to the limit counts as other memory. A request that nothing else serves is
// held. The watches over fences, one for each client with pending memory, are goroutines of the shell, so that neither a turn
// nor the driver goroutine waits, and later requests are served. A held request for several runs frees the runs that it has. No
// request waits for the fences of an excluded client (Exclude).
//
// # Waits on the device
//
// An Await is the first operation of the job that fills a window, so that the client gets the pages only after its stream was
// made to wait; if it fails nothing has changed, and the request is served without it. Borrowed pages come back under the fence
// of the client that borrowed them, which cannot pass before the fences that its stream waits for. Pages that were not granted
// keep their tags: the wait was one client's.
//
// Waits make no cycle. A stream waits for a mark that was recorded before the wait is submitted, and a mark stands for work
// that was submitted before it. So every edge leads from work to work that was submitted earlier.
//
// A study of eight real traces chose the order, the window and the victims.
//
// # Plain segments
//
// NewPlain makes a core without address space. A Refill that no free run serves gets a segment of its own length or of the
// growth step; where that would break the budget, whole free segments are freed first: that is recycling without a move.
// Freeing a segment waits for all work of the device, so that it happens while no client has any, and otherwise only if the
// limit leaves no other way. A warm-up frees such segments too, rather than break the limit.
//
// # A limit below the reserved bytes
//
// Nothing grows until less is reserved. Free memory is granted as before; memory that clients return beyond the limit is
// released, and at each Tick the clients get a reclaim request.
//
// # When the driver refuses
//
// After CUDA_ERROR_OUT_OF_MEMORY the request returns to the rung "ask all", with a cap that acts as its limit: the reserved
// bytes and the bytes that the driver reports free. So the other clients are asked, and handles are recycled up to the cap. The
// cap holds for this request alone: the next asks the driver again, and finds memory that other processes have released. Each
// further refusal lowers it, and the last of a few denies. After a wait for a fence the last two resorts, to release all free
// handles and then also those kept in place, are tried again: pending memory could not be released before. After any other
// error the request is denied.
package core
