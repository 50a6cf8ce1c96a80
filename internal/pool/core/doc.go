// Package core decides for the pool of one device which request gets memory. It performs nothing: a message goes in, the books
// change, Effects come out. It has no goroutine, clock, context or driver, so that a test can reach every state. What exists is
// the matter of internal/pool/memory: pages, handles, and the driver jobs that change them. The order of the requests that wait is
// that of internal/pool/admission.
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
//	warmer       maps memory ahead of need: Warm
//	shrinker     releases memory: Trim, the cache bounds, a limit that was lowered, age
//	noProgress   refuses a request where no client that holds memory makes progress
//	answers      lends memory to requests, refuses and ends them
//	asks, jobs   reclaim requests to clients, driver jobs
//	clients, queue, waiters, fences, budget    what those know
//
// # How a Refill is served
//
// A new search follows each step, so that a request never misses memory that has become free. The
// steps have the names of the rungs; ladder.climb takes the next one.
//
//  1. Search: the best fitting free run of those that the client may use.
//  2. Take: where growth would break the soft budget and cannot be bought (see below), the client
//     with the most free memory of those that have a run so long returns its longest run. One
//     client is asked, and no other, however many there are. Before that, clients whose callers
//     have freed more than they have published look (Look), so that the live peak rises by the
//     bytes that are in use at one moment.
//  3. AskOwn: the client returns its own free pages.
//  4. Collect: where the pages that are missing in a window would break the soft budget, and
//     cannot be bought, the clients with the most free memory return their longest runs, until
//     those come to as many pages.
//  5. Grow, while reserved bytes stay within the soft budget: the window of the wanted length with
//     the fewest pages missing is filled with new handles. A new window lies beside the client's
//     own memory, so that it merges with the free tail of the client's last page, or apart from
//     that of all others.
//  6. Poll: the free runs of fences that have passed become clean.
//  7. Borrow (the first half of Recycle), with WaitsAvoidGrowth and WaitsAlways: the window takes
//     runs with any tag, and new handles within the soft budget; the client's stream waits, on the
//     device, for the fences of the others (Await).
//  8. Recycle: a window that can be bought is filled with new handles. Else whole clean handles
//     outside the window are unmapped, the longest first, and mapped into the window or released;
//     the rest of the window is created. Short handles are released, and created anew as parts of
//     long ones. This may break the soft budget, never the limit. Before it breaks the soft budget
//     by pages that cannot be bought, or would break the limit, all other clients return all that
//     they do not use (AskAll), once for a request.
//  9. Wait and Hold: where only pending memory is left, its fences are watched, and the request
//     leaves the queue until one passes or a Return comes. Then it goes on at AskAll.
//  10. Deny, with the facts: package pool makes the error of them.
//
// A Refill that waits for other clients' frees begins with Offer: its client is asked whether the
// memory that it keeps serves the request. After Search it asks the clients that may keep free
// pages which they were not asked for yet, and goes on at Grow.
//
// With WaitsAlways step 7 comes before 3 and before 5, too, without new handles.
//
// Refills go first. A warm-up frees what it has collected when a Refill waits, and searches again.
// A Refill of one run that free memory can serve is never behind another request.
//
// A Refill of several runs gets them one by one, each by the steps above, and only while it is the
// first: two that had parts could keep each other from the rest. When it is denied its client keeps
// what it has got, as cache.
//
// An answer to an Ask counts once all runs that the client had sent before, and its reports that
// memory came home, have arrived. A client may return less than it has published, or nothing: its
// callers have used the memory since.
//
// # Clients that miss in turns
//
// A run that a client returned is lent to the next as a whole while clients miss in turns: the rest
// of it would be asked for again. Pages that a client returned for its own request, and that served
// nobody, go home to it at once. Those of other clients stay with the pool while clients miss in
// turns. They go home once eight further requests that needed memory of others were the same
// client's (contention).
//
// # The soft budget
//
// It is the live peak, the most that clients used at one moment or wanted, and a part more
// (Policy.Slack; where several clients hold memory SharedSlack, which widens up to MostSharedSlack),
// and the bytes that recycling and purchases have added. The peak is that of two windows of time, of Settings.AgeTicks each: this
// one and the one before.
//
// Whether the pool grows or moves memory once more is a ski rental problem: to rent each day, or to
// buy once. Each move books its cost: an ask, each run that comes back for it, each handle that is
// recycled, by the time that they were seen to take. A page beyond the soft budget has a price
// (Policy.PageWorth). As soon as moves have cost the price of the pages that are missing, these are
// bought: their price is taken off the cost, and the budget rises by as much. So growth costs no
// more than moves did, and moves no more than growth, but for the last price. With a PageWorth of 0
// nothing is bought. Beyond nine eighths of the sum of the most that each client used by itself a
// page is four times as dear: no client would miss there if memory lay where it is wanted.
//
// Before single pages, a thirty-second of the live peak is bought as slack, until that is as wide as
// it gets. Within the slack a client that misses grows by a step, and is spared the next misses; one
// that gets the pages that it asked for, and no more, misses again soon. Where no other client has
// anything left to return, and several hold memory, growth beyond the budget is forced: no move could
// have served, so that it costs nothing, and widens the slack as well. When the live peak rises it
// takes over bought bytes, and their price comes back. At the end of a window of time half of the
// cost and of the extra slack is forgotten, and so are purchases that are not reserved any more.
//
// # Age
//
// A page that has been free and clean for Settings.AgeTicks ticks is old. At each tick handles of
// which all pages are old go back to the driver, at most 256 of them. Memory that a Warm has mapped
// does not get old before it was used. Plain segments stay.
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
// # Sleep
//
// A client that has joined Apart gets windows of holes, which are filled with new handles or with ones that are moved there as a
// whole: its handles hold no page of others. Its climb is a way of its own (apartWay): the limit bounds it, and not the soft budget.
// Sleep gives the physical memory of such a client back to the driver in one job, and its pages stay lent; Wake makes new memory for
// them at the same addresses. What others keep free is released for it, where the limit or the driver would refuse. A job that has
// failed leaves each handle at the point that it had reached, and both go on from there; a Wake that fails puts all of the client's
// handles back to sleep. Pages that are returned asleep become holes.
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
// NewPlain makes a core without address space. A Refill that no free run serves gets a segment of
// its own length or of the growth step; where that would break the budget, whole free segments are
// freed first: the recycling of step 8 without a move. Freeing a segment waits for all work of the
// device, so that it happens while no client has any, and otherwise only where the limit leaves no
// other way. A warm-up frees such segments too, rather than break the limit.
//
// # A limit below the reserved bytes
//
// Nothing grows until less is reserved. Free memory is granted as before; what clients return beyond the limit is released, and at
// each Tick the clients get a reclaim request.
//
// # When the driver refuses
//
// After CUDA_ERROR_OUT_OF_MEMORY the request goes on from AskAll, as if the limit were what the
// driver could give at that moment: what it had given, and what it reported to have left. So the
// other clients are asked, and handles are recycled up to that. It holds for this request alone:
// the next asks the driver again, and finds what other processes have released. Each further
// refusal lowers it, and the last of a few denies. After a wait for a fence the last two resorts,
// releasing all free handles and then those kept in place as well, are tried anew: pending memory
// could not be released before. After any other error the request is denied.
package core
