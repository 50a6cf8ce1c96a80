// Package pool is the memory of one device that the streams share: an actor around the decisions of
// pool/core, and the driver goroutine, which performs its driver calls, one job at a time, from New until Close.
//
// Streams speak to it in three verbs: Refill asks for pages, Return gives pages back with a fence, and
// when asked (Client.Asked) a stream answers with a Return. The pool's turn decides and ends; whoever
// ran it performs what it left: answers to streams, and at most one Job for the driver goroutine, whose
// outcome comes back as a message. A turn never calls the driver, and a stream that is served from what
// is free never waits for it.
//
// # Fences
//
// A Return of pages comes with a mark, which stands for the client's fence of that number; several Returns may have one
// fence, whose mark comes with one of them. The driver goroutine queries and waits for marks, and gives them up once they
// have passed. A client in need of pages that are behind another's mark is made to wait for it on the device
// (Client.Follow), in the job that gives it the pages.
//
// # Two kinds of segments
//
// With virtual memory the arena is reserved address space, and a page's address follows from its number. Plain
// segments (cuMemAlloc) lie where the driver puts them: page numbers are names, and a table (Places) says the
// address of each. An entry is written by the driver goroutine before the page is granted, and not again before the page
// has come back and its segment was freed, so that who holds a page may read its entry.
//
// # Concurrency properties
//
//   - Every Refill gets exactly one answer, Granted or Denied, also when the pool's actor panics or is
//     stopped, a driver call fails or panics, another client panics, or the pool is closed.
//   - Grants to one client are delivered in no promised order.
//   - The driver goroutine is the only one that maps and unmaps; it also owns the marks of the fences.
//   - Close waits for the job in flight, gives all memory back and ends the actor and the driver goroutine. It does so also
//     when the actor was stopped before; only books that do not balance keep their memory.
package pool
