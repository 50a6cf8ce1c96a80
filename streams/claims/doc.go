// Package claims decides what becomes of the requests of a stream that did not end on the fast path. It has no goroutine, clock or
// driver: package streams tells it what has happened and does what it says.
//
// A claim is one request, for a buffer or for a batch. Its states:
//
//		         .------- granted, or a fence passed, or the handler says so ------.
//		         v                                                                |
//		arrives --> Served --search found nothing--> Asked --refused--> Consulted |
//		         |     |                               |                Delayed --'
//		         |     '--found--> answered            |
//		         '--owes its tenant, or others wait--> Parked --granted or offered--> Served
//
//	  - Served: in its stream's turn, or on the way there.
//	  - Asked: the pool was asked for what is missing.
//	  - Consulted: the pool has refused, and the caller's handler is asked whether to try once more.
//	  - Delayed: the pool has refused, and a fence that keeps freed memory has yet to pass.
//	  - Parked: it waits in the pool for other people's frees, or for its tenant's quota, and holds nothing.
//
// Claim decides about one claim (Arrive, Refused), Bill about what its tenant is charged, Table knows all that wait and which
// answers have to wait for pages on their way, Looks says when a look at fences may spare the pool a request, and FenceWait when
// a goroutine waits for them.
package claims
