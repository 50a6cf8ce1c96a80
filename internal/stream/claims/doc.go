// Package claims decides about the requests of a stream that did not end on the fast path. It has
// no goroutine, clock or driver: package streams reports events to it and carries out its verdicts.
//
// A claim is one request, for a buffer or for a batch. Its transitions:
//
//	from                        event                                              to
//	(arrives)                   neither of the next row                            Served
//	(arrives)                   its tenant owes, or it waits behind other claims   Parked
//	Served                      memory found                                       (answered)
//	Served                      search found nothing                               Asked
//	Asked                       granted                                            Served
//	Asked                       refused, and the caller has a handler              Consulted
//	Asked, Consulted            refused, and fences keep freed memory              Delayed
//	Asked, Consulted, Delayed   refused for want of memory, and it may wait        Parked
//	Asked, Consulted, Delayed   refused otherwise                                  (answered)
//	Consulted                   the handler returns true                           Served
//	Delayed                     a fence passed                                     Served
//	Parked                      granted, or offered its stream's memory            Served
//
// Its states:
//
//   - Served: in its stream's turn, or on the way there.
//   - Asked: the pool was asked for the missing memory.
//   - Consulted: the pool has refused, and the caller's handler is deciding whether to try once
//     more.
//   - Delayed: the pool has refused, and a fence that keeps freed memory has yet to pass.
//   - Parked: it waits in the pool for other callers' frees, or for its tenant's quota, and holds
//     nothing.
//
// Claim decides about one claim (Arrive, Refused), Bill about its tenant's charge. Table holds the waiting
// claims, and the answers that must wait for pages in transit. Looks decides when a query of fences may save
// a request to the pool, and FenceWait when a goroutine waits for them.
package claims
