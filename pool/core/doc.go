// Package core decides for the pool of one device which request gets memory. It performs nothing: a message goes in, the books
// change, Effects come out. It has no goroutine, clock, context or driver, so that a test can reach every state. What exists is
// the matter of pool/core/memory: pages, handles, and the driver jobs that change them. The order of the requests that wait is
// that of pool/core/admission.
//
// # Words
//
// A client is a stream or a reservation. Every page of the arena is a hole, free, lent to one client, or busy with the driver job in flight. Each
// free run carries a tag: the client that returned it and that client's fence. It is clean once the fence has passed. Its own client
// may get it at once, others when it is clean or when their stream is made to wait for the fence (Await, below); only clean pages are unmapped. Pending
// memory is free memory that is not clean.
//
// # The parts
//
//	Core         takes a message into the books, and lets requests go on
//	scheduler    decides which request goes on
//	ladder       finds memory for a Refill that free memory does not serve
//	warmer       maps memory ahead of need: Warm, and what the forecast wants
//	shrinker     releases memory: Trim, the cache bounds, a limit that was lowered
//	noProgress   refuses a request where no client that holds memory makes progress
//	answers      lends memory to requests, refuses and ends them
//	asks, jobs   reclaim requests to clients, driver jobs
//	clients, queue, waiters, fences, budget, forecast    what those know
//
// # How a Refill is served
//
// A new search follows each step, so that a request never misses memory that has become free. The steps have the names of the rungs;
// ladder.climb takes the next one.
//
//  1. Search: the best fitting free run of those that the client may use.
//  2. AskOwn: the client returns its own free pages. Look: before the live peak rises, the clients report what they use. AskAll:
//     where growth would break the soft budget, the other clients return their free pages.
//  3. Grow, while reserved bytes stay within the soft budget, (1+slack) x live peak: the window of the wanted length with the
//     fewest pages missing is filled with new handles. A new window lies beside the client's own memory, so that it merges with
//     the free tail of the client's last page, or apart from that of all others.
//  4. Poll: the free runs of fences that have passed become clean.
//  5. Borrow (the first half of Recycle), with WaitsAvoidGrowth and WaitsAlways: the window takes runs whatever their tag, and new handles within the soft
//     budget; the client's stream waits, on the device, for the fences of the others (Await).
//  6. Recycle: whole clean handles outside the window are unmapped, the longest first, and mapped into the window or released; the
//     rest of the window is created. Short handles are released, and created anew as parts of long ones. This may break the soft
//     budget, never the limit.
//  7. Wait and Hold: where only pending memory is left, its fences are watched, and the request leaves the queue until one passes or a
//     Return comes. Then it goes on at AskAll.
//  8. Deny, with the facts: package pool makes the error of them.
//
// A Refill that waits for other clients' frees begins with Offer: its client is asked whether what it keeps serves the request. After
// Search it asks the clients that may keep free pages which they were not asked for yet, and goes on at Grow.
//
// With WaitsAlways step 5 comes before 2 and before 3, too, without new handles.
//
// Refills go first. A warm-up frees what it has collected when a Refill waits, and searches again. A Refill of one run that free
// memory can serve is never behind another request.
//
// A Refill of several runs gets them one by one, each by the steps above, and only while it is the first: two that had parts could
// keep each other from the rest. When it is denied its client keeps what it has got, as cache.
//
// An answer to an Ask counts once all runs that the client had sent before, and its reports that memory came home, have arrived.
//
// # Long handles
//
// The live peak is stable once a few requests in a row did not raise it. Where much was recycled while it rose, requests are long
// compared to what lives, and new handles are longer (LongPages): the cost of a move is per handle.
//
// # Reservations
//
// A client that reserves gets one run by a Refill, gets no reclaim request, and keeps the run until Unreserve. A Refill that names
// the reservation (From) and finds all that it wants there is served from it before anything else: the pages change hands without
// having been free, so that no other request comes between. Such a client never waits, so that no deadlock is declared while it
// holds anything.
//
// # Forecast
//
// With Settings.Predict the pool learns from the lent pages when a loop will need memory, and how much (forecast): where pages come
// and go at similar intervals, the pool reserves what the last rise reserved again shortly before the next, by a warm-up of its own
// of one run. For that time, and in a rise of a loop that is known until the tick after it, the cache bounds of the pool do not
// apply. A trim ends this until the next rise, and so does a driver that has no more memory. A rise that does not come ends it
// with the interval in which it was expected.
//
// # Requests that are held
//
// Nobody knows when a fence passes: behind it may be a kernel that takes a day, or a collective that waits for another GPU. So no
// request waits for a fence while other memory is left, and growth up to the limit counts as other memory. A request that nothing
// else serves is held. The watches over fences, one for each client with pending memory, are goroutines of the shell, so that
// neither a turn nor the driver goroutine waits, and later requests go on. A request for several runs frees what it had got. No
// request waits for the fences of an excluded client (Exclude).
//
// # Waits on the device
//
// An Await is the first operation of the job that fills a window, so that the client has the pages only after its stream was made to
// wait; where it fails nothing has changed, and the request goes on without it. Borrowed pages come back under the fence of the
// client that borrowed them, which cannot pass before those that its stream waits for. Pages that were not granted keep their tags:
// the wait was one client's.
//
// Waits make no cycle. A stream waits for a mark that was recorded before the wait is submitted, and a mark stands for work that was
// submitted before it. So every edge leads from work to work that was submitted earlier.
//
// The order, the window and the victims are those that a study of eight real traces found best.
//
// # Plain segments
//
// NewPlain makes a core without address space. A Refill that no free run serves gets a segment of its own length or of the growth
// step; where that would break the budget, whole free segments are freed first: the recycling of step 6 without a move. Freeing a
// segment waits for all work of the device, so that it happens while no client has any, and otherwise only where the limit leaves
// no other way. A warm-up frees such segments too, rather than break the limit.
//
// # A limit below the reserved bytes
//
// Nothing grows until less is reserved. Free memory is granted as before; what clients return beyond the limit is released, and at
// each Tick the clients get a reclaim request.
//
// # When the driver refuses
//
// After CUDA_ERROR_OUT_OF_MEMORY the request goes on from step 2, as if the limit were what the driver could give at that moment:
// what it had given, and what it reported to have left. So the other clients are asked, and handles are recycled up to that. It
// holds for this request alone: the next asks the driver again, and finds what other processes have released. Each further
// refusal lowers it, and the last of a few denies. After a wait for a fence the last two resorts, releasing all free handles and then those
// kept in place as well, are tried anew: pending memory could not be released before. After any other error the request is denied.
package core
