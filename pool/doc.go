// Package pool manages the memory of one device, which its streams share: an actor around the decisions
// of internal/pool/core, and the driver goroutine, which makes its driver calls, one job at a time, from New
// until Close.
//
// A stream sends a Refill for pages, and a Return, with a fence, of pages that it does not need. At
// a reclaim request of the pool (Client.Asked) it answers with a Return. The pool's turn decides
// and ends; the goroutine that ran it performs the effects: answers to streams, and at most one Job
// for the driver goroutine, whose outcome comes back as a message. A turn never calls the driver,
// and a stream that free pages serve never waits for it.
//
// # Parts
//
//	Pool      the actor: messages in, steps of the core, effects out (turn.go, message.go)
//	driver    the driver goroutine: jobs, marks of fences, watches over them
//	quotas    tenants, and the Refills that wait for their quotas
//	waits     figures of waiting requests
//	arena     addresses of pages
//	errors    denialError makes the error of a denied request, OutOfMemoryError.Remedies its advice
//
// # Fences
//
// A Return of pages comes with a mark, which was recorded for the client's fence of that number;
// several Returns may have one fence, whose mark comes with one of them. The driver goroutine
// queries and waits for marks, and releases them once they have passed. A client that gets pages
// under another client's mark is made to wait for it on the device (Client.Follow), in the job
// that grants the pages.
//
// # Two kinds of segments
//
// With virtual memory the arena is reserved address space, and a page's address follows from its
// number. Plain segments (cuMemAlloc) lie where the driver puts them: page numbers are names, and a
// table (Places) has the address of each. The driver goroutine writes an entry before the page is
// granted, and again only after the page was returned and its segment freed, so that the holder of
// a page may read its entry.
//
// # Peers
//
// Other devices may be given access to the memory (EnablePeer). The core knows nothing of them: the access of a mapping is one
// operation of a job, whose driver call names them too. The calls for memory that is mapped already are made before the next
// job, with the pages that the books have as mapped when that is planned.
//
// # Concurrency properties
//
//   - Every Refill gets exactly one answer, Granted or Denied, also when the pool's actor panics or
//     is stopped, a driver call fails or panics, another client panics, or the pool is closed.
//   - A panic in a turn fails the current message. Earlier decisions are carried out, if the
//     books balance; else the pool is quarantined, and denies the requests that it had granted in that turn.
//   - Grants to one client are delivered in no promised order.
//   - The driver goroutine is the only one that maps and unmaps; it also owns the marks of the
//     fences.
//   - Close waits for the job in flight, releases all memory and ends the actor and the driver
//     goroutine, also when the actor was stopped before; only books that do not balance keep their
//     memory.
package pool
