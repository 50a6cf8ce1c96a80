// Package core decides for the pool of one device; it performs nothing. A message goes in, the books
// change, Effects come out. It has no goroutine, clock, context or driver, so that every state can be
// reached by a test.
//
// # Words
//
// The arena is the reserved address space of the device, counted in pages of the driver's granularity
// (2 MiB on an H200). A client is a stream. Every page of the arena is in one of four states:
//
//	hole  --Map-->   free   --Refill-->  lent  --Return-->  free  --Unmap-->  hole
//	                  \__ busy: part of the driver job in flight __/
//
// hole is address space only, free is mapped and nobody's, lent belongs to one client, busy is neither
// until the job in flight has ended. A free run is a maximal sequence of free pages with the same tag:
// the client that returned it and that client's fence at that time. A run is clean once its fence has
// passed. A tagged run may be granted to its own client at once, to others when it is clean or behind an Await, to Unmap
// only when it is clean.
//
// A handle is a physical allocation that is mapped over a run of pages and can only be unmapped whole.
// Reserved bytes are those of all handles that exist, mapped or not.
//
// # How a Refill is served
//
// Each step is followed by a new search, so that memory which is already free is never missed.
//
//  1. The best fitting free run of those that the client may use.
//  2. Ask: the client returns its own free pages, and where the soft budget would be broken the others
//     return theirs.
//     Before the live peak is raised by what clients said that are quiet now, those are looked at.
//  3. Grow, while reserved stays within the soft budget (1+eps) x peak live: the window of the wanted
//     length with the fewest pages missing is mapped full with new handles. What is mapped anew lies beside the client's
//     own memory or apart from all others': what is left of its last page joins it then.
//  4. Poll: fences that have passed clean their runs.
//  5. Borrow, with WaitsAvoidGrowth and WaitsAlways: the window is made of runs whatever their tag, and of new handles within the soft
//     budget; the client's stream is made to wait, on the device, for the fences of the others (Await).
//  6. Recycle: whole clean handles outside the window are unmapped, the longest first,
//     and mapped into the window or released; only the rest is created. Short ones are released, and made anew as parts
//     of long ones. This may break the soft budget,
//     never the limit.
//  7. Hold: where only pending memory is left, its fences are watched, and the request leaves the queue until one passes or a Return
//     comes. Then it begins at step 2 again. See "Requests that are held".
//  8. Deny, with the facts.
//
// With WaitsAlways step 5 comes before 2 and before 3, too, without new handles.
//
// Refills go first. What a warm-up has together is nobody's: it lets go when a Refill waits, and looks
// again. A Refill of one run that free memory can serve is never behind anything.
//
// A Refill of several runs gets them one by one, each by the steps above, and only while it is the first: two that had
// parts could keep each other from the rest. What it has got when it is denied stays with its client, as cache.
//
// An answer to an Ask counts once all runs that the client had sent before have arrived: pages on their way are never
// taken for pages that are not there.
//
// # Long handles
//
// The live peak stands once a few requests in a row did not raise it. Where much was recycled while it rose, requests are long
// beside what lives, and new handles are longer (LongPages): what is moved costs by the handle.
//
// # What is set aside
//
// A client that reserves gets one run by a Refill, is asked for nothing, and keeps it until Unreserve. A Refill that names it (From) and
// finds all that it wants there is served from it before anything else: the pages change hands without having been free, so that
// nobody comes between. Such a client never waits, so that no deadlock is declared while it holds anything.
//
// # What is foreseen
//
// With Settings.Predict the pool learns from what is lent when a loop will need memory, and how much (forecast): where pages come
// and go at intervals that are alike, what was reserved in the last rise is reserved again shortly before the next, by a warm-up of
// the pool's own as one run. For that time, and in a rise of a loop that is known until the tick after it, the budget of the pool
// does not count. A trim meanwhile ends it until the next rise, and so does a driver that has no more; what does not come goes
// back after the time in which it was looked for.
//
// # Requests that are held
//
// Nobody knows when a fence passes: behind it may be a kernel that takes a day, or a collective that waits for another GPU. So no
// request waits for one while there is memory elsewhere, and up to the limit growing is elsewhere. A request that nothing else serves is
// held. The watches over fences, one for each client with pending memory, are goroutines of the shell, so that neither a turn nor the
// driver goroutine waits, and later requests go on. A request that wanted several runs gives back what it had got.
// An excluded client is not waited for (Exclude).
//
// # Waits on the device
//
// An Await is the first operation of the job that makes a window, so that the client has the pages only after its
// stream was made to wait; where it fails nothing has changed, and the request goes on without it. Pages that were
// borrowed come back under the fence of the client that had them, which cannot pass before those that it waits for.
// Pages that nobody got keep the tag that they had: the wait was one client's.
//
// Waits make no circle. A stream waits for a mark that was recorded before the wait is submitted, and a mark stands
// for work that was submitted before it. So every edge leads from work to work that was submitted earlier.
//
// The order, the window and the victims are those that a study of eight real traces found best.
//
// # Plain segments
//
// NewPlain makes a core without address space. A segment is a handle that Alloc makes at once, Free ends, and nothing
// moves. It takes page numbers with a hole on either side, so that no run reaches over two segments; holes are never
// filled. A Refill that no free run serves gets a segment of its own length or of the growth step; where that would break
// the budget, whole free segments go first: the recycling of step 6 without moving anything. Freeing a segment waits for all work of
// the device, so that it is done while no client has any, and otherwise only where the limit leaves no other way. A warm-up frees such
// segments too, rather than break the limit.
//
// # A limit below what is held
//
// Nothing grows until less is held. Free memory is granted as ever; what comes back beyond the limit is released, and at
// each Tick the clients are asked for what they do not use.
//
// # When the driver refuses
//
// A job ends at the first operation that fails. What it made, moved or took out goes back to the driver by
// a rollback; free pages that were part of it are free again, each under the tag that it had. After
// CUDA_ERROR_OUT_OF_MEMORY the request goes on from step 2, as if the limit were what the driver could give at that moment:
// what it had given, and what it said that it had left. So the others are asked, and handles are recycled up to that. It holds for this
// request alone: the next asks the driver again, and finds what other processes have given back. Each further refusal lowers it, and the
// last of a few denies. After anything else the request is denied. A handle that a rollback cannot give back is lost: it counts as reserved, its
// pages stay busy where it is mapped, and Close tries it once more.
//
// # Invariants (Check)
//
// Every page has one state. Pages that are free or lent are covered by a mapped handle. The sum of the
// bytes of all handles is reserved; free runs are maximal and are exactly those in the bins.
package core
